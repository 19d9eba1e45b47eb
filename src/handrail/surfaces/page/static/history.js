// Shows the history of a workspace: entries with their diffs, and what takes them back.

import { post } from "./api.js";
import { diffView } from "./diff.js";
import { day, el, fill } from "./dom.js";
import { planView } from "./plan.js";
import { on, sessionOf } from "./store.js";
import { Windowed } from "./windowed.js";
import { workspaceChoice } from "./workspaces.js";

export function historyView() {
  let workspace = "";
  let entries = [];
  let shownEntry = null;
  const search = el("input", { type: "search", class: "filter", placeholder: "Search", "aria-label": "Search the history", autocomplete: "off" });
  const plan = el("div", { class: "plan-place" });
  const detail = el("div", { class: "detail-place" });
  const blank = el("p", { class: "blank", role: "status" }, "No workspace is known yet.");
  const list = new Windowed({ label: "History, the newest first", rowHeight: 30, most: 14, draw: (n) => row(entries[n]), key: (n) => `${entries[n].n}${entries[n].undone ? " undone" : ""}` });
  const wanted = (what) => planView(plan, workspace, what, load);
  const choice = workspaceChoice((path) => {
    workspace = path;
    tools.hidden = false;
    fill(plan);
    fill(detail);
    load();
  });
  const mark = el("input", { type: "text", class: "mark", placeholder: "Name of a mark", "aria-label": "Name of a mark", maxlength: 200, onkeydown: (event) => event.key === "Enter" && setMark() });
  const setMark = async () => {
    try {
      await post("/api/mark", { workspace, name: mark.value });
      mark.value = "";
      load();
    } catch (error) {
      fill(plan, el("p", { class: "careful", role: "alert" }, error.message));
    }
  };
  const tools = el("div", { class: "rule-row tools", hidden: true },
    el("button", { type: "button", class: "undo-last", onclick: () => wanted({ kind: "undo" }) }, "Undo the last change…"),
    el("button", { type: "button", class: "redo", onclick: () => wanted({ kind: "redo" }) }, "Redo…"),
    el("span", { class: "mark-place" }, mark, el("button", { type: "button", class: "set-mark", onclick: setMark }, "Set a mark")));
  const host = el("section", { class: "history", "aria-labelledby": "history" },
    el("div", { class: "section-head" }, el("h2", { id: "history" }, "History"), choice.host, search),
    tools,
    plan, blank, list.host, detail);

  let asked = 0;
  async function load() {
    if (!workspace) return;
    const mine = ++asked;
    const found = await post("/api/history", { workspace, search: search.value }).catch((error) => ({ error }));
    if (mine !== asked) return;
    entries = found.entries ?? [];
    const none = search.value ? "No change matches." : "No changes are recorded yet.";
    blank.textContent = found.error?.message ?? (found.more ? "Older entries are not listed here: handrail history shows them." : entries.length ? "" : none);
    list.host.hidden = entries.length === 0;
    list.resize(entries.length);
    list.refresh();
  }

  function row(entry) {
    if (!entry) return el("div");
    const files = entry.files.map((each) => each.path);
    const about = entry.mark ?? (entry.command ? `$ ${entry.command}` : files.join(", "));
    return el("button", { type: "button", class: `history-row${entry.undone ? " undone" : ""}${entry.n === shownEntry ? " shown" : ""}`, "data-entry": entry.n, onclick: () => open(entry) },
      el("span", { class: "h-n" }, entry.n), el("span", { class: "c-time" }, day(entry.time)), el("span", { class: "c-tool" }, entry.tool || entry.kind),
      el("span", { class: "c-target" }, about), el("span", { class: "h-count" }, `${files.length} ${files.length === 1 ? "file" : "files"}`), el("span", { class: "c-by" }, entry.undone ? "undone" : entry.by));
  }

  async function open(entry) {
    shownEntry = entry.n;
    list.refresh();
    const found = await post("/api/entry", { workspace, n: entry.n }).catch((error) => ({ error }));
    if (found.error) return fill(detail, el("p", { class: "careful" }, found.error.message));
    const load = (split, start, count) => post("/api/history-diff", { diff: found.diff.name, split, start, count });
    const button = (name, what, style = "") => el("button", { type: "button", class: style, onclick: () => wanted(what) }, name);
    const isMark = entry.kind === "mark";
    fill(detail, el("article", { class: "detail", tabindex: -1, "aria-label": `Entry ${entry.n}` },
      el("header", { class: "detail-head" }, el("h3", {}, `Entry ${entry.n}`, entry.note && `: ${entry.note}`)),
      el("div", { class: "rule-row" },
        !isMark && entry.undoable && !entry.undone && button("Undo this…", { kind: "undo", n: entry.n }, "undo-this"),
        isMark && button("Go back to this mark…", { kind: "undo", to: entry.mark }, "to-mark"),
        entry.session && !isMark && button("Take back everything this session did…", { kind: "undo", session: entry.session }, "undo-session"),
        entry.files.length === 1 && restore(entry, entry.files[0].path, "Restore the file as it was after this…")),
      entry.files.length > 1 && el("details", { class: "params" }, el("summary", {}, "Restore one of the files as it was after this"),
        el("ul", { class: "restores" }, entry.files.slice(0, 100).map(({ path }) => el("li", {}, el("code", {}, path), " ", restore(entry, path, "Restore…"))))),
      diffView(found.diff, load)));
    detail.firstChild.focus();
  }

  const restore = (entry, path, name) =>
    el("button", { type: "button", class: "restore", "aria-label": `${name} ${path}`, onclick: () => wanted({ kind: "restore", path, n: entry.n }) }, name);

  let timer = 0;
  const loadSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(load, 200);
  };
  search.addEventListener("input", loadSoon);
  const stop = on("call", (call) => call.changed && sessionOf(call.session).path === workspace && loadSoon());
  return { host, end: () => {
    stop();
    choice.end();
  } };
}
