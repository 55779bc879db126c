// Keys of the browser in JupyterLab: arrows and j, k move, s selects, c copies the note. `element` is where this script is.
(() => {
  const find = (tries) => {
    const root = element.closest(".audit-browse");
    if (root) begin(root);
    else if (tries) setTimeout(() => find(tries - 1), 50);
  };
  const names = {ArrowLeft: "previous", k: "previous", ArrowRight: "next", j: "next", s: "select", c: "copy"};
  const begin = (root) => {
    if (root.dataset.keys) return;
    root.dataset.keys = "on";
    root.tabIndex = 0;
    // JupyterLab's own shortcuts stay away from the panel
    root.setAttribute("data-lm-suppress-shortcuts", "true");
    const typing = (target) => target.matches("textarea, input, select, [contenteditable=true]");
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      const button = names[event.key] && root.querySelector(`.audit-browse-${names[event.key]}`);
      if (!button) return;
      event.preventDefault();
      event.stopPropagation();
      if (!button.disabled) button.click();
    });
    root.querySelector(".audit-browse-copy").addEventListener("click", () => {
      const area = root.querySelector(".audit-browse-note textarea");
      navigator.clipboard?.writeText(area.value).catch(() => area.select()) ?? area.select();
    });
    root.addEventListener("click", (event) => {
      if (!typing(event.target) && !event.target.closest("button, summary, a")) root.focus({preventScroll: true});
    });
    root.focus({preventScroll: true});
  };
  find(100);
})();
