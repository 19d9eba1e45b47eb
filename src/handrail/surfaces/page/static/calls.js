// Lists the calls, the newest first, and shows one in detail.

import { post } from "./api.js";
import { diffView } from "./diff.js";
import { baseName, clock, duration, el, fill } from "./dom.js";
import { followOutput } from "./output.js";
import { isAsking, on, sessionOf, store } from "./store.js";
import { Windowed } from "./windowed.js";

const STATES = { running: "running", done: "done", failed: "failed", lost: "lost" };
const NARROW = matchMedia("(max-width: 700px)");

export function callsView() {
  const heading = el("h2", { id: "calls" }, "Calls");
  const filter = el("input", { type: "search", class: "filter", placeholder: "Filter", "aria-label": "Filter calls", autocomplete: "off" });
  const detail = el("div", { class: "detail-place" });
  let listed = [];
  let shown = null;
  const open = (call) => {
    shown?.end();
    shown = callDetail(call, () => {
      shown.end();
      shown = null;
      fill(detail);
      list.refresh();
      list.shown.get(call.id)?.focus();
    });
    fill(detail, shown.host);
    shown.host.focus();
    list.refresh();
  };
  const at = (n) => listed[listed.length - 1 - n];
  const list = new Windowed({
    label: "Calls, the newest first",
    rowHeight: NARROW.matches ? 52 : 30,
    most: 18,
    draw: (n) => row(at(n), open, shown?.id),
    key: (n) => at(n)?.id,
  });
  list.host.classList.add("call-list");
  const blank = el("p", { class: "blank" }, "No calls yet. Calls of every agent that works on this machine appear here.");
  const host = el("section", { class: "calls", "aria-labelledby": "calls" }, el("div", { class: "section-head" }, heading, filter), blank, list.host, detail);

  const matching = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return words.length ? store.calls.filter((call) => words.every((word) => textOf(call).includes(word))) : store.calls;
  };
  // The call at the upper edge stays there while newer ones come above it.
  const anchor = () => (list.host.scrollTop > 0 ? [...list.shown].find(([, each]) => parseFloat(each.style.top) >= list.host.scrollTop) : undefined);
  const update = soon(() => {
    const held = anchor();
    const before = held && parseFloat(held[1].style.top);
    listed = matching();
    list.resize(listed.length);
    const n = held ? listed.length - 1 - listed.lastIndexOf(store.byId.get(held[0])) : listed.length;
    if (n < listed.length && n * list.rowHeight !== before) {
      list.host.scrollTop += n * list.rowHeight - before;
      list.update();
    }
    blank.hidden = store.calls.length > 0;
    list.host.hidden = store.calls.length === 0;
    heading.textContent = store.calls.length ? `Calls (${store.calls.length})` : "Calls";
  });
  filter.addEventListener("input", update);
  const changed = (call) => {
    texts.delete(call);
    if (filter.value) update();
    const n = listed.length - 1 - listed.lastIndexOf(call);
    if (n < listed.length) list.redraw(n);
  };
  const narrow = () => {
    list.rowHeight = NARROW.matches ? 52 : 30;
    update();
  };
  NARROW.addEventListener("change", narrow);
  const all = () => {
    list.refresh();
    update();
  };
  const stops = [() => NARROW.removeEventListener("change", narrow), on("calls", update), on("call", changed), on("asking", changed), on("sessions", all), on("state", all)];
  const timer = setInterval(() => {
    for (let n = list.top; n < list.end; n++) if (at(n)?.state === "running") list.redraw(n);
  }, 1000);
  update();
  return { host, end: () => {
    stops.forEach((stop) => stop());
    clearInterval(timer);
    shown?.end();
  } };
}

// Do the work once in the next frame, however often it is asked for until then.
function soon(work) {
  let planned = false;
  return () => {
    if (planned) return;
    planned = true;
    requestAnimationFrame(() => {
      planned = false;
      work();
    });
  };
}

const texts = new WeakMap();

function textOf(call) {
  let text = texts.get(call);
  if (text === undefined) {
    const session = sessionOf(call.session);
    text = `${call.tool} ${call.dialect} ${call.target} ${call.state} ${call.error} ${call.by} ${session.root} ${session.client}`.toLowerCase();
    texts.set(call, text);
  }
  return text;
}

function took(call) {
  return call.state === "running" ? duration((Date.now() / 1000 + store.late - call.time) * 1000) : duration(call.took);
}

function row(call, open, shownId) {
  if (!call) return el("div");
  const session = sessionOf(call.session);
  const asking = isAsking(call);
  return el("button", { type: "button", class: `call-row is-${asking ? "asking" : call.state}${call.id === shownId ? " shown" : ""}`, "data-call": call.id, onclick: () => open(call) },
    el("span", { class: "c-time" }, clock(call.time)),
    el("span", { class: "c-state" }, el("span", { class: "dot", "aria-hidden": "true" }), call.error || (asking ? "waits for you" : STATES[call.state])),
    el("span", { class: "c-tool" }, call.tool),
    el("span", { class: "c-target" }, call.target),
    el("span", { class: "c-where" }, baseName(session.root)),
    el("span", { class: "c-by" }, call.by),
    el("span", { class: "c-took" }, took(call)));
}

function callDetail(call, close) {
  const body = el("div", { class: "detail-body" }, el("p", { class: "blank" }, "Loading…"));
  const facts = el("dl", { class: "facts" });
  const stop = el("button", { type: "button", class: "danger small", onclick: () => stopCall(call, stop) }, "Stop");
  const host = el("article", { class: "detail", tabindex: -1, "aria-label": `Call of ${call.tool}` },
    el("header", { class: "detail-head" },
      el("h3", {}, el("span", { class: "tool" }, call.tool), " ", el("span", { class: "dialect" }, call.dialect)),
      stop, el("button", { type: "button", class: "small", onclick: close }, "Close")),
    facts, body);
  host.addEventListener("keydown", (event) => event.key === "Escape" && close());
  const output = outputView();
  const following = followOutput(call.id, () => post("/api/call", { call: call.id }).then((all) => all.output), output.add);
  let found = {};
  let asked = 0;
  const drawFacts = () => {
    const session = sessionOf(call.session);
    const known = [["State", call.error ? `${STATES[call.state]}: ${call.error}` : STATES[call.state]], ["Time", `${clock(call.time)}, ${took(call)}`],
      ["Workspace", session.root], ["Client", session.client], ["Approved by", call.by], ...(found.facts ?? [])];
    fill(facts, known.filter(([, value]) => value).map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
    stop.hidden = call.state !== "running";
  };
  const load = async () => {
    const mine = ++asked;
    drawFacts();
    let answer;
    try {
      answer = await post("/api/call", { call: call.id });
    } catch (error) {
      return fill(body, el("p", { class: "careful" }, error.message));
    }
    const changes = answer.changed ? await changesOf(call) : null;
    if (mine !== asked) return;
    found = answer;
    drawFacts();
    fill(body, ...detailParts(found, (found.output || call.state === "running") && output.host), changes);
  };
  const stops = [
    on("call", (changed) => changed === call && load()),
    on("state", () => load()),
    following.end,
  ];
  load();
  following.start();
  return { id: call.id, host, end: () => stops.forEach((each) => each()) };
}

function detailParts(found, output) {
  const block = (name, text) => text && el("section", {}, el("h4", {}, name), el("pre", { class: "text", tabindex: 0, "aria-label": name }, text));
  return [
    (found.warnings ?? []).map((each) => el("p", { class: "careful" }, each)),
    block("Parameters", found.params),
    output && el("section", {}, el("h4", {}, "Output"), output),
    block("Answer, as the model reads it", found.answer),
  ];
}

// The changes of a call stand in the history of its workspace.
async function changesOf(call) {
  const session = sessionOf(call.session);
  const found = await post("/api/entry", { workspace: session.path, session: session.session, call: call.number }).catch(() => null);
  if (!found?.entry) return null;
  const load = (split, start, count) => post("/api/history-diff", { diff: found.diff.name, split, start, count });
  return el("section", {}, el("h4", {}, "Changes"), diffView(found.diff, load));
}

async function stopCall(call, button) {
  button.disabled = true;
  try {
    await post("/api/stop", { call: call.id });
  } catch (error) {
    button.textContent = error.message;
  }
}

const MOST = 262144;

function outputView() {
  const host = el("pre", { class: "text output", tabindex: 0, "aria-label": "Output" });
  let length = 0;
  const add = ({ data, skipped }, first) => {
    if (first) {
      host.replaceChildren();
      length = 0;
    }
    const below = host.scrollHeight - host.scrollTop - host.clientHeight < 40;
    if (skipped) host.append(el("span", { class: "careful" }, `\n… ${skipped} bytes not shown …\n`));
    host.append(document.createTextNode(data));
    length += data.length;
    while (length > MOST && host.firstChild) {
      length -= host.firstChild.textContent.length;
      host.firstChild.remove();
    }
    if (below) host.scrollTop = host.scrollHeight;
  };
  return { host, add };
}
