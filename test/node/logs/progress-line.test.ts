import { Writable } from "node:stream";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LogCounts, progressText, startProgressLine } from "../../../cli/logs/progress.ts";

const MB = 1_000_000;

function progressAt(lines: number, bytesRead: number, bytesTotal: number | undefined): LogCounts {
  return Object.assign(new LogCounts(), { lines, requests: lines, bytesRead, bytesTotal });
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
    [20_000, 2 * MB, 10 * MB, 1000, "20% · 20,000 lines · 20,000 per second · 4s left"],
    [1_234_567, 10 * MB, 10 * MB, 10_000, "100% · 1,234,567 lines · 123,457 per second · 0s left"],
    [20_000, 2 * MB, undefined, 2000, "20,000 lines · 10,000 per second"],
    [0, 0, 10 * MB, 5000, "0 lines · 0 per second"],
  ])("shows %d lines and %d of %s bytes after %d ms", (lines, read, total, elapsed, text) => {
    expect(progressText(progressAt(lines, read, total), elapsed)).toBe(text);
  });
});

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
    const line = startProgressLine(progressAt(20_000, 2 * MB, 10 * MB), quiet, stream);
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
    expect(parts[4]).toBe("20% · 20,000 lines · 20,000 per second · 4s left");
    expect(parts[5]).toBe("");
  });
});
