import { Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LogCounts, startProgressLine } from "../../../cli/logs/progress.ts";

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

describe("the line that shows the progress", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllEnvs();
  });

  /** Returns what is written while a second passes. */
  function written(isTTY: boolean, quiet: boolean, term: string): string {
    vi.stubEnv("TERM", term);
    const { stream, text } = terminal(isTTY);
    const line = startProgressLine(
      Object.assign(new LogCounts(), { lines: 20_000 }),
      quiet,
      stream,
    );
    for (let turn = 0; turn < 4; turn++) {
      vi.advanceTimersByTime(250);
      line.update();
      line.update();
    }
    line.stop();
    return text();
  }

  it.each([
    ["a stream that is no terminal", false, false, "xterm"],
    ["a terminal with --quiet", true, true, "xterm"],
    ["a dumb terminal", true, false, "dumb"],
  ])("is not written to %s", (_, isTTY, quiet, term) => {
    expect(written(isTTY, quiet, term)).toBe("");
  });

  it("is redrawn at most five times a second on a terminal, and removed in the end", () => {
    const parts = written(true, false, "xterm").split("\r\u001b[K");
    expect(parts).toHaveLength(6);
    expect(parts[4]).toBe("20,000 lines");
    expect(parts[5]).toBe("");
  });
});
