// Holds what the server has told, and tells the views what has changed.

export const store = {
  questions: new Map(),
  sessions: new Map(),
  calls: [],
  byId: new Map(),
  held: new Map(),
  quiet: 0.4,
  late: 0, // how many seconds the clock of the server is ahead
};
const listeners = new Map();
const CALLS = 10000;
const ANSWERED = 50;

export function on(kind, take) {
  if (!listeners.has(kind)) listeners.set(kind, new Set());
  listeners.get(kind).add(take);
  return () => listeners.get(kind).delete(take);
}

function tell(kind, about) {
  for (const take of listeners.get(kind) ?? []) take(about);
}

export function take(name, data) {
  if (name === "state") takeState(data);
  else takers[data.type]?.(data);
}

function takeState(data) {
  store.quiet = data.quiet;
  store.late = data.now - Date.now() / 1000;
  const known = new Map(data.questions.map((each) => [each.id, each]));
  store.questions = known;
  store.sessions = new Map(data.sessions.map((each) => [each.id, each]));
  store.calls = data.calls.map((each) => (store.byId.has(each.id) ? Object.assign(store.byId.get(each.id), each) : each));
  store.byId = new Map(store.calls.map((each) => [each.id, each]));
  store.held = new Map(data.held.map((each) => [each.session, each]));
  for (const kind of ["questions", "sessions", "calls", "held", "state"]) tell(kind);
}

const takers = {
  session({ session }) {
    store.sessions.set(session.id, session);
    tell("sessions", session);
  },
  call({ call }) {
    store.calls.push(call);
    store.byId.set(call.id, call);
    if (store.calls.length > CALLS) store.byId.delete(store.calls.shift().id);
    tell("calls", call);
  },
  "call-changed"({ call, known }) {
    const found = store.byId.get(call);
    if (!found) return;
    Object.assign(found, known);
    tell("call", found);
  },
  question({ question }) {
    store.questions.set(question.id, question);
    tell("questions", question);
    tellCallOf(question);
  },
  answered({ question, answered }) {
    const found = store.questions.get(question);
    if (!found) return;
    Object.assign(found, { state: "answered", answered });
    const done = [...store.questions.values()].filter((each) => each.state === "answered");
    for (const old of done.slice(0, -ANSWERED)) store.questions.delete(old.id);
    tell("questions", found);
    tellCallOf(found);
  },
  refused(event) {
    tell("refused", event);
  },
  output(event) {
    tell("output", event);
  },
  held({ held }) {
    if (held.items.length) store.held.set(held.session, held);
    else store.held.delete(held.session);
    tell("held", held);
  },
};

export function openQuestions() {
  return [...store.questions.values()].filter((each) => each.state === "open").sort((a, b) => a.time - b.time);
}

function tellCallOf(question) {
  const call = store.byId.get(question.call);
  if (call) tell("asking", call);
}

// Whether a call waits for the answer to its question.
export const isAsking = (call) => call.state === "running" && openQuestions().some((each) => each.call === call.id);

export const sessionOf = (id) => store.sessions.get(id) ?? { root: "", client: "", path: "" };

// The workspaces that the page knows, the newest first.
export function workspaces() {
  const found = new Map();
  for (const session of store.sessions.values()) found.set(session.path, session);
  return [...found.values()].reverse();
}
