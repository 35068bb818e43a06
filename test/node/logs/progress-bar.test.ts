import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { progressText, startProgressBar } from "../../../cli/logs/progress.ts";

const MB = 1_000_000;

/** The progress of logs, of which nothing is broken. */
function progressAt(lines: number, bytesRead: number, bytesTotal: number | undefined) {
  const none = { broken: 0, brokenLines: [], late: 0, outside: 0, ignored: 0, notes: [] };
  return { ...none, requests: lines, lines, bytesRead, bytesTotal };
}

function terminal(isTTY: boolean) {
  let text = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk;
      done();
    },
  });
  return { stream: Object.assign(stream, { isTTY }), text: () => text };
}

describe("progressText", () => {
  it.each([
    [0, 0, 10 * MB, 0, "0 lines"],
    [1, 100, 10 * MB, 20, "1 line"],
    [20_000, 2 * MB, 10 * MB, 1000, "20,000 lines · 20,000 per second · 4s left"],
    [1_234_567, 10 * MB, 10 * MB, 10_000, "1,234,567 lines · 123,457 per second"],
    [20_000, 2 * MB, undefined, 2000, "20,000 lines · 10,000 per second"],
    [0, 0, 10 * MB, 5000, "0 lines"],
  ])("shows %d lines and %d of %s bytes after %d ms", (lines, read, total, elapsed, text) => {
    expect(progressText(progressAt(lines, read, total), elapsed)).toBe(text);
  });
});

describe("startProgressBar", () => {
  it.each([
    ["a stream that is no terminal", false, {}],
    ["a terminal with --quiet", true, { quiet: true, term: "xterm" }],
    ["a dumb terminal", true, { term: "dumb" }],
  ])("writes nothing to %s", (_, isTTY, options) => {
    const { stream, text } = terminal(isTTY);
    const bar = startProgressBar(progressAt(5, 1, 2), { ...options, stream });
    bar.update();
    bar.stop();
    expect(text()).toBe("");
  });

  it.each([
    [10 * MB, "20%"],
    [undefined, "20,000 lines · 20,000 per second"],
  ])("shows the progress of %s bytes on a terminal", (bytesTotal, shown) => {
    const { stream, text } = terminal(true);
    let time = 0;
    const bar = startProgressBar(progressAt(20_000, 2 * MB, bytesTotal), {
      stream,
      term: "xterm",
      now: () => time,
    });
    time = 1000;
    bar.update();
    bar.stop();
    expect(text()).toContain(shown);
    expect(text()).toContain("20,000 lines · 20,000 per second");
  });
});
