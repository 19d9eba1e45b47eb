// Follows output that comes in numbered pieces: shows each once and in order, and loads all of it again where one is missing.

import { on } from "./store.js";

// `load()` returns a promise of all output so far, with the number of its last piece; `show(piece, first)` shows it.
export function followOutput(id, load, show) {
  let shown = -1; // the number of the last piece that is shown; -1 while all of it is loading
  let waiting = [];
  let loading = false;
  const take = (piece) => {
    if (shown < 0) waiting.push(piece);
    else if (piece.n === shown + 1) {
      shown = piece.n;
      show(piece, false);
    } else if (piece.n > shown) start();
  };
  const start = async () => {
    if (loading) return;
    loading = true;
    shown = -1;
    waiting = [];
    const found = await load().catch(() => undefined);
    loading = false;
    if (found === undefined) return; // the server is away: the next state starts again
    shown = found?.n ?? 0;
    if (found) show(found, true);
    const missed = waiting;
    waiting = [];
    missed.forEach(take);
  };
  const stops = [on("output", (event) => event.of === id && take(event)), on("state", start)];
  return { start, end: () => stops.forEach((stop) => stop()) };
}
