"use strict";
const content = JSON.parse(document.getElementById("content").textContent);
const get = (id) => document.getElementById(id);
const FILTERS = ["severity", "detector", "stratum", "category", "type", "states"];
const ORDER = Object.keys(content.severities);
const PART = 100; // items that the list holds at a time
const places = new Map(content.items.map((item, i) => [item.id, i]));
const store = "items:" + content.pool;
let shown = [];      // places of the items that the filters let through, in order
let current = -1;    // place of the item on screen
let first = 0;       // where the list begins within `shown`
let chosen = new Set();

// ---------------------------------------------------------------------------------------------------- small helpers
function make(kind, facts, ...inside) {
  const node = document.createElement(kind);
  for (const [name, value] of Object.entries(facts || {})) {
    if (name === "text") node.textContent = value;
    else if (value !== undefined && value !== null) node.setAttribute(name, value);
  }
  node.append(...inside.filter((x) => x !== null && x !== undefined));
  return node;
}
const number = (n) => n < 10000 ? String(n) : n.toLocaleString("en-US");
const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
const address = (id) => "#item=" + encodeURIComponent(id);
const item = (place) => content.items[place];
const condition = (i) => content.conditions[i][1];

function restore() {
  try {
    chosen = new Set(JSON.parse(localStorage.getItem(store)) || []);
  } catch (error) {
    chosen = new Set(); // a browser that keeps nothing: the selection lasts as long as the page
  }
}
function keep() {
  try {
    localStorage.setItem(store, JSON.stringify([...chosen]));
  } catch (error) {
    return;
  }
}

// ---------------------------------------------------------------------------------------------------------- filters
function values(entry, name) {
  if (name === "severity") return entry.findings.map((f) => f[1]);
  if (name === "detector") return entry.findings.map((f) => f[0]);
  if (name === "states") return entry.states.length === 1 ? entry.states : entry.states.filter((s) => s !== "read");
  return entry[name] ? [entry[name]] : [];
}
const spoken = {severity: content.severities, detector: content.detectors, category: content.categories,
  type: content.answers, states: content.states, stratum: {}};
function wordsFor(name, value) {
  const said = spoken[name][value];
  if (name === "severity") return said ? `${value}: ${said}` : value;
  return said || value;
}
function fillFilters() {
  for (const name of FILTERS) {
    const counts = new Map();
    for (const entry of content.items) {
      for (const value of new Set(values(entry, name))) counts.set(value, (counts.get(value) || 0) + 1);
    }
    let known = [...counts.keys()];
    if (name === "severity") known = ORDER.filter((s) => counts.has(s));
    const box = get(name);
    box.append(make("option", {value: "", text: "any"}));
    for (const value of known) {
      box.append(make("option", {value, text: `${wordsFor(name, value)} (${number(counts.get(value))})`}));
    }
    box.parentElement.hidden = known.length < 2;
  }
  for (const [value, text] of Object.entries(content.sorts)) get("sort").append(make("option", {value, text}));
}
const haystacks = [];
function haystack(place) {
  if (!haystacks[place]) {
    const e = item(place);
    haystacks[place] = [e.id, e.question, ...e.options.map((o) => o[1]), e.stratum, ...e.findings.map((f) => f[3])]
      .join(" ").toLowerCase().replace(/\s+/g, " ");
  }
  return haystacks[place];
}
function passes(place, wanted, words) {
  const e = item(place);
  if (wanted.severity || wanted.detector) { // both must meet in one finding
    const met = e.findings.some((f) => (!wanted.severity || f[1] === wanted.severity)
      && (!wanted.detector || f[0] === wanted.detector));
    if (!met) return false;
  }
  for (const name of ["stratum", "category", "type"]) if (wanted[name] && e[name] !== wanted[name]) return false;
  if (wanted.states && !values(e, "states").includes(wanted.states)) return false;
  if (wanted.mine && !chosen.has(e.id)) return false;
  return words.every((word) => haystack(place).includes(word));
}
const share = (e) => e.tally ? e.tally[0] / (e.tally[2] * e.tally[3]) : Infinity;
const compare = (a, b) => a < b ? -1 : a > b ? 1 : 0;
const ORDERS = { // the content comes most suspicious first, and sorting keeps that among equals
  benchmark: (a, b) => item(a).place - item(b).place,
  stratum: (a, b) => compare(item(a).stratum, item(b).stratum),
  right: (a, b) => compare(share(item(a)), share(item(b))) ||
    compare(ORDER.indexOf(item(a).severity), ORDER.indexOf(item(b).severity)) || item(a).place - item(b).place,
};
function filter() {
  const wanted = {mine: get("mine").checked};
  for (const name of FILTERS) wanted[name] = get(name).value;
  const words = get("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  shown = content.items.map((_, i) => i).filter((i) => passes(i, wanted, words));
  const order = ORDERS[get("sort").value];
  if (order) shown.sort(order);
  const all = content.items.length;
  get("count").textContent = shown.length === all ? plural(all, "item") : `${number(shown.length)} of ${plural(all, "item")}`;
  first = 0;
  if (!shown.includes(current)) current = shown.length ? shown[0] : -1;
  show(current, false);
}

// ------------------------------------------------------------------------------------------------------------- list
function drawList() {
  const at = shown.indexOf(current);
  if (at >= 0 && (at < first || at >= first + PART)) first = Math.floor(at / PART) * PART;
  const list = get("list").querySelector("ol");
  list.start = first + 1;
  list.replaceChildren(...shown.slice(first, first + PART).map(row));
  const more = get("more");
  more.replaceChildren();
  if (shown.length > PART) {
    more.append(make("span", {text: `${number(first + 1)} to ${number(Math.min(first + PART, shown.length))} of ${number(shown.length)}`}));
    for (const [text, step] of [["Earlier", -PART], ["Later", PART]]) {
      const to = first + step;
      const button = make("button", {type: "button", text});
      button.disabled = to < 0 || to >= shown.length;
      button.addEventListener("click", () => show(shown[to], true));
      more.append(button);
    }
  }
  list.querySelector("[aria-current]")?.scrollIntoView({block: "nearest"});
}
function row(place) {
  const e = item(place), mine = place === current;
  const link = make("a", {href: address(e.id), tabindex: mine ? "0" : "-1", "aria-current": mine ? "true" : null},
    make("span", {class: "who"}, make("b", {text: e.id, dir: "auto"}), severity(e.severity),
      chosen.has(e.id) ? make("span", {class: "star", text: "★", title: "in your selection"}) : null),
    make("span", {class: "why", text: e.findings[0] ? e.findings[0][3] : "", dir: "auto"}));
  return make("li", {}, link);
}
const severity = (name) => make("span", {class: "sev " + name, text: name, title: content.severities[name]});

// ------------------------------------------------------------------------------------------------------------- item
function drawItem() {
  const box = get("item");
  if (current < 0) {
    box.replaceChildren(make("p", {class: "empty", text: "No item is like this. Change a filter, or show all."}));
    return;
  }
  const e = item(current);
  const parts = [moves(e), make("h2", {dir: "auto", text: "Item " + e.id}), where(e)];
  if (e.picture) parts.push(picture(e));
  if (e.question) parts.push(make("p", {class: "question text", dir: "auto", text: e.question}));
  if (e.votes.length || e.options.length) parts.push(voteTable(e));
  parts.push(make("h3", {text: "Why it is here"}), reasons(e));
  if (e.replies && e.replies.length) parts.push(make("h3", {text: "Replies"}), ...replies(e));
  if (e.neighbours.length) parts.push(make("h3", {text: "Neighbours"}), neighbours(e));
  parts.push(noteBox(e));
  box.replaceChildren(...parts);
}
function moves(e) {
  const at = shown.indexOf(current);
  const back = make("button", {type: "button", id: "previous", text: "← Previous", "aria-keyshortcuts": "k ArrowLeft"});
  const on = make("button", {type: "button", id: "next", text: "Next →", "aria-keyshortcuts": "j ArrowRight"});
  back.disabled = at <= 0;
  on.disabled = at < 0 || at >= shown.length - 1;
  back.addEventListener("click", () => move(-1, "previous"));
  on.addEventListener("click", () => move(1, "next"));
  const pick = make("button", {type: "button", id: "pick", "aria-pressed": String(chosen.has(e.id)), "aria-keyshortcuts": "s",
    text: chosen.has(e.id) ? "★ Selected" : "☆ Select"});
  pick.addEventListener("click", select);
  const copy = make("button", {type: "button", id: "copy", text: "Copy note", "aria-keyshortcuts": "c"});
  copy.addEventListener("click", copyNote);
  const save = make("button", {type: "button", id: "save", text: `Save selection (${chosen.size}) as CSV`});
  save.disabled = !chosen.size;
  save.addEventListener("click", saveSelection);
  return make("div", {class: "moves", role: "group", "aria-label": "Item"}, back, on, pick, copy, save);
}
function where(e) {
  const at = shown.indexOf(current);
  const facts = [at < 0 ? "not among the filtered items" : `${number(at + 1)} of ${number(shown.length)}`,
    e.stratum, ...e.facts, content.answers[e.type] || e.type, content.categories[e.category] || e.category];
  if (e.tally) {
    const [full, blind, n, draws] = e.tally;
    facts.push(`right with image ${full}, without ${blind}, of ${n * draws} ${draws > 1 ? "answers" : plural(n, "model").split(" ")[1]}`);
  }
  return make("p", {class: "where"}, severity(e.severity), " ",
    ...facts.filter(Boolean).map((text) => make("span", {text, dir: "auto"})));
}
function picture(e) {
  const image = make("img", {alt: "picture of item " + e.id, src: content.pictures[e.picture]});
  image.addEventListener("load", () => { if (image.naturalWidth < 128) image.className = "tiny"; });
  return make("p", {class: "shown"}, image);
}
function voteTable(e) {
  const asked = content.conditions.map((_, i) => i).filter((i) => e.votes.some((v) => v[1][i].length));
  const most = Math.max(1, ...asked.map((i) => e.votes.reduce((sum, v) => sum + v[1][i].length, 0)));
  const texts = new Map(e.options);
  const head = make("tr", {}, make("th", {scope: "col", text: e.options.length ? "Option" : "Answer", class: "l", colspan: 2}),
    ...asked.map((i) => make("th", {scope: "col", class: "votes l", text: condition(i)})));
  const rows = e.votes.map(([name, said]) => {
    const unread = name === "", key = !unread && name === e.key;
    const label = unread ? "–" : texts.has(name) ? name : "";
    const cell = make("td", {dir: "auto", class: "text"});
    cell.append(unread ? "no readable answer" : texts.has(name) ? texts.get(name) || "(no text)" : name);
    if (key) cell.append(make("span", {class: "mark", text: "key"}));
    return make("tr", {class: key ? "key" : unread ? "unread" : ""}, make("th", {scope: "row", text: label}), cell,
      ...asked.map((i) => meter(said[i], most)));
  });
  const outside = e.key && !e.votes.some((v) => v[0] === e.key);
  return make("div", {class: "scroll"}, make("table", {"aria-label": "Options and votes"}, make("thead", {}, head), make("tbody", {}, ...rows)),
    outside ? make("p", {class: "note", text: "Key: " + e.key}) : null);
}
function meter(models, most) {
  const names = models.map((m) => content.models[m]).join(", ");
  const fill = make("span", {class: "fill"});
  fill.style.width = `${100 * models.length / most}%`;
  const bar = make("span", {class: "meter", title: names || null}, make("span", {class: "n", text: models.length || "·"}),
    make("span", {class: "track", "aria-hidden": "true"}, fill));
  return make("td", {class: "votes"}, bar);
}
function reasons(e) {
  return make("ul", {class: "found"}, ...e.findings.map(([detector, level, score, message, arm, facts]) => {
    const title = make("p", {class: "title", text: content.detectors[detector] + " "});
    title.append(severity(level));
    const more = [`score ${score.toFixed(2)}`, arm && `arm ${arm}`, facts].filter(Boolean).join(" · ");
    return make("li", {class: level}, title, make("p", {text: message, dir: "auto", class: "text"}), make("p", {class: "facts", text: more, dir: "auto"}));
  }));
}
function replies(e) {
  const out = [];
  content.conditions.forEach(([, words], c) => {
    const mine = e.replies.filter((r) => r[1] === c);
    if (!mine.length) return;
    const brief = mine.map((r) => r[2] || "–").join(" ");
    const rows = mine.map(([model, , answer, state, verdict, judge, text]) => {
      return make("tr", {}, make("th", {scope: "row", text: content.models[model]}),
        make("td", {text: answer || "–", dir: "auto"}),
        make("td", {class: ["right", "wrong"].includes(verdict) ? verdict : null, text: [verdict, verdict && judge && `(by ${judge})`, state === "read" || state === "unread" ? "" : state].filter(Boolean).join(" ")}),
        make("td", {class: "said text", dir: "auto", text: text || "(empty)"}));
    });
    const head = make("tr", {}, ...["Model", "Read as", "Verdict", "Reply"].map((text) => make("th", {scope: "col", class: "l", text})));
    out.push(make("details", {}, make("summary", {}, `${words}: ${plural(mine.length, "reply").replace("replys", "replies")} `,
      make("span", {class: "state", text: brief.length < 60 ? brief : ""})),
      make("div", {class: "scroll"}, make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows)))));
  });
  return out;
}
function neighbours(e) {
  return make("ul", {class: "near"}, ...e.neighbours.map(([kind, total, near]) => {
    const names = [];
    near.forEach(([id, question], i) => {
      if (i) names.push(", ");
      if (question === null) names.push(make("a", {href: address(id), dir: "auto", text: id}));
      else names.push(make("span", {dir: "auto", text: id, title: question || null}));
    });
    if (total > near.length) names.push(` and ${number(total - near.length)} more`);
    return make("li", {}, make("span", {class: "kind", text: content.neighbours[kind] + ": "}), ...names);
  }));
}

// ------------------------------------------------------------------------------------------------ note and selection
const plain = (text) => String(text).replace(/\s+/g, " ").trim();
function marked(text, start) { // as the Markdown list beside this page escapes it
  const line = plain(text).replace(/([\\`*{}[\]<>#|~$])/g, "\\$1").replace(/(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])/g, "\\_")
    .replace(/&(?=[A-Za-z\\][^\s&]*;)/g, "\\&");
  return start ? line.replace(/^([-+])/, "\\$1").replace(/^(\d+)([.)])/, "$1\\$2") : line;
}
function note(e) {
  const lines = [`**${marked(content.benchmark)}, item ${marked(e.id)}** (${e.severity})`, ""];
  if (e.question) lines.push("> " + marked(e.question, true), "");
  const counts = (name) => content.conditions.map(([, words], i) => {
    const row = e.votes.find((v) => v[0] === name);
    return row && row[1][i].length ? `${row[1][i].length} ${words}` : "";
  }).filter(Boolean).join(", ");
  for (const [letter, text] of e.options) {
    lines.push(`- ${letter}: ${marked(text) || "(no text)"}${letter === e.key ? " **(key)**" : ""}${counts(letter) ? ` – ${counts(letter)}` : ""}`);
  }
  if (!e.options.some((o) => o[0] === e.key) && e.key) lines.push("- key: " + marked(e.key));
  lines.push("", ...e.findings.map((f) => `- ${marked(content.detectors[f[0]])}: ${marked(f[3])}`));
  return lines.join("\n") + "\n";
}
function noteBox(e) {
  const area = make("textarea", {id: "note", rows: 8, readonly: "", "aria-label": "Note on this item in Markdown", spellcheck: "false"});
  area.value = note(e);
  return make("div", {class: "notebox"}, make("h3", {text: "Note"}), area, make("p", {id: "said", role: "status"}));
}
async function copyNote() {
  if (current < 0) return;
  const area = get("note");
  let done = false;
  try {
    await navigator.clipboard.writeText(area.value);
    done = true;
  } catch (error) {
    const before = document.activeElement;
    area.select();
    done = document.execCommand("copy");
    if (done) before?.focus();
  }
  get("said").textContent = done ? "Copied." : "This browser does not let the page copy: the note is selected, copy it with your keyboard.";
  get("copy").textContent = done ? "Copied" : "Copy note";
}
function select() {
  if (current < 0) return;
  const id = item(current).id;
  if (!chosen.delete(id)) chosen.add(id);
  keep();
  const within = document.activeElement?.id === "pick";
  drawList();
  drawItem();
  if (within) get("pick").focus();
}
const quoted = (text) => '"' + String(text).replaceAll('"', '""') + '"';
const guarded = (text) => /^'*[=+\-@\t\r\n＝＋－＠]/.test(text) && !/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?%?$/.test(text) ? "'" + text : text;
function csv() {
  const lines = [["item", "stratum", "severity", "key", "reasons", "question"]];
  for (const e of content.items) {
    if (chosen.has(e.id)) lines.push([e.id, e.stratum, e.severity, e.key, e.findings.map((f) => f[3]).join("; "), plain(e.question)]);
  }
  return lines.map((line) => line.map((text) => quoted(guarded(text))).join(",")).join("\n") + "\n";
}
function saveSelection() {
  const link = make("a", {href: URL.createObjectURL(new Blob([csv()], {type: "text/csv;charset=utf-8"})), download: "selection.csv"});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// -------------------------------------------------------------------------------------------------------- movement
function show(place, tell) {
  current = place;
  drawList();
  drawItem();
  if (tell && place >= 0) history.replaceState(null, "", address(item(place).id));
}
function move(step, focus) {
  const at = shown.indexOf(current), to = at < 0 ? 0 : at + step;
  if (to < 0 || to >= shown.length) return;
  show(shown[to], true);
  if (focus === "list") get("list").querySelector("[aria-current]").focus();
  else if (focus) (get(focus).disabled ? get("item") : get(focus)).focus({preventScroll: true});
  const top = get("item").getBoundingClientRect().top;
  if (top < 0) get("item").scrollIntoView();
}
function follow() {
  const wanted = /^#item=(.*)$/.exec(location.hash);
  if (!wanted) return false;
  let id = wanted[1];
  try {
    id = decodeURIComponent(id);
  } catch (error) {
    id = wanted[1];
  }
  const place = places.get(id);
  get("lost").hidden = place !== undefined;
  get("lost").textContent = place === undefined ? `Item ${id} is not on this page: it is not flagged, or left out.` : "";
  if (place === undefined) return false;
  if (!shown.includes(place)) {
    get("filters").querySelector("form").reset();
    current = place;
    filter();
  } else show(place, false);
  return true;
}
const typing = (target) => target.matches("input, select, textarea, [contenteditable=true]");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing(event.target)) event.target.blur();
  if (typing(event.target)) return;
  const inList = get("list").contains(event.target) && event.target.tagName === "A";
  if (event.key === "j" || event.key === "ArrowRight" || (inList && event.key === "ArrowDown")) move(1, inList ? "list" : "");
  else if (event.key === "k" || event.key === "ArrowLeft" || (inList && event.key === "ArrowUp")) move(-1, inList ? "list" : "");
  else if (event.key === "/") get("text").focus();
  else if (event.key === "s") select();
  else if (event.key === "c") copyNote();
  else return;
  event.preventDefault();
});
addEventListener("hashchange", () => { if (follow()) get("item").focus({preventScroll: true}); });
addEventListener("beforeprint", () => document.querySelectorAll("#item details").forEach((d) => { d.open = true; }));
get("filters").querySelector("form").addEventListener("submit", (event) => event.preventDefault());
get("reset").addEventListener("click", () => setTimeout(filter));
let waiting = 0;
get("text").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(filter, 120); });
for (const name of [...FILTERS, "sort", "mine"]) get(name).addEventListener("change", filter);

restore();
fillFilters();
get("tool").hidden = false;
if (matchMedia("(max-width: 52rem)").matches) get("filters").open = false;
filter();
follow();
document.documentElement.dataset.ready = "yes";
