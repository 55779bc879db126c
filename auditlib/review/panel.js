// Number keys label, arrows move, u takes back. `element` is where JupyterLab shows this script.
(() => {
  const find = (tries) => {
    const root = element.closest(".audit-review");
    if (root) begin(root);
    else if (tries) setTimeout(() => find(tries - 1), 50);
  };
  const begin = (root) => {
    if (root.dataset.keys) return;
    root.dataset.keys = "on";
    root.tabIndex = 0;
    // JupyterLab's own shortcuts (a number makes a heading of the cell) stay away from the panel
    root.setAttribute("data-lm-suppress-shortcuts", "true");
    const shown = () => root.querySelector(".audit-state")?.dataset.state;
    const typing = (target) => target.matches("textarea, input, [contenteditable=true]");
    let answered = null, since = 0;
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
      let name = null;
      if (/^[1-9]$/.test(event.key)) name = `audit-label-${event.key}`;
      else if (event.key === "ArrowLeft" || event.key === "ArrowUp") name = "audit-previous";
      else if (event.key === "ArrowRight" || event.key === "ArrowDown") name = "audit-next";
      else if (event.key === "u") name = "audit-undo";
      const button = name && root.querySelector(`.${name}`);
      if (!button) return;
      event.preventDefault();
      event.stopPropagation();
      // a second key before the next row is on screen would judge a row that nobody has seen
      const waiting = answered !== null && answered === shown() && Date.now() - since < 5000;
      if (event.repeat || waiting || button.disabled) return;
      answered = shown();
      since = Date.now();
      button.click();
    });
    root.addEventListener("click", (event) => { if (!typing(event.target)) root.focus({preventScroll: true}); });
    root.focus({preventScroll: true});
  };
  find(100);
})();
