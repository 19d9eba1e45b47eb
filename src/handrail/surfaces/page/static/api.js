// Talks to the server. The key comes from the exchange of the token, and stays with this window and this port.

const KEY = "handrail-key";
const PROOF = "handrail-proof";
const HEADER = "X-Handrail-Page";
const SERVER = "X-Handrail-Server";
const AGAIN_MS = [200, 500, 1000, 2000, 5000];

export class Refused extends Error {
  constructor(status, why) {
    super(why);
    this.status = status;
  }
}

export async function enter() {
  // Exchange the token in the fragment; at once remove it from the address and from the history.
  const token = location.hash.slice(1);
  if (/^[\w-]{40,}$/.test(token)) {
    history.replaceState(null, "", "/");
    const answer = await send("/api/enter", { token }, "new");
    sessionStorage.setItem(KEY, answer.key);
    sessionStorage.setItem(PROOF, answer.proof);
  }
  return sessionStorage.getItem(KEY) !== null;
}

async function send(path, body, key) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", [HEADER]: key },
    body: JSON.stringify(body),
    credentials: "same-origin",
    redirect: "error",
  });
  if (!answer.ok) throw new Refused(answer.status, await answer.text());
  return answer.json();
}

export function post(path, body) {
  const key = sessionStorage.getItem(KEY);
  if (key === null) return Promise.reject(new Refused(401, "This window is not known to the server."));
  return send(path, body, key);
}

// Follow the events. After a lost connection go on behind the last event that was taken.
export async function follow(take, tell) {
  let last = "";
  let failed = 0;
  for (;;) {
    const abort = new AbortController();
    const awake = watchdog(abort);
    try {
      const headers = { [HEADER]: sessionStorage.getItem(KEY) ?? "" };
      if (last) headers["Last-Event-ID"] = last;
      const answer = await fetch("/api/events", { headers, credentials: "same-origin", cache: "no-store", signal: abort.signal });
      const foreign = answer.ok && answer.headers.get(SERVER) !== sessionStorage.getItem(PROOF);
      if (answer.status === 401 || foreign) {
        // Another program may have taken the port after the server ended: nothing that it says is shown, and it is told nothing more.
        abort.abort();
        sessionStorage.clear();
        tell("closed");
        return;
      }
      if (!answer.ok) throw new Refused(answer.status, await answer.text());
      for await (const event of events(answer.body, awake)) {
        failed = 0;
        tell("open");
        last = event.id;
        taken(take, event);
      }
    } catch {
      // The connection is lost: try again below.
    }
    awake.end();
    tell(failed > 3 ? "lost" : "waiting");
    await new Promise((done) => setTimeout(done, AGAIN_MS[Math.min(failed++, AGAIN_MS.length - 1)]));
  }
}

// A mistake in a view must not end the stream: the event would come again and again.
function taken(take, event) {
  try {
    take(event.name, JSON.parse(event.data));
  } catch (error) {
    console.error(error);
  }
}

// The server says something every 15 seconds. A silent connection is dead, for example after sleep.
function watchdog(abort) {
  let timer = 0;
  const touch = () => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(), 40000);
  };
  touch();
  return { touch, end: () => clearTimeout(timer) };
}

async function* events(body, awake) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let kept = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    awake.touch();
    kept += value;
    let end;
    while ((end = kept.indexOf("\n\n")) >= 0) {
      const event = parsed(kept.slice(0, end));
      kept = kept.slice(end + 2);
      if (event.data) yield event;
    }
  }
}

function parsed(text) {
  const event = { name: "", id: "", data: "" };
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (line.startsWith("event:")) event.name = value;
    else if (line.startsWith("id:")) event.id = value;
    else if (line.startsWith("data:")) event.data += event.data ? `\n${value}` : value;
  }
  return event;
}
