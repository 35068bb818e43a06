import { afterEach, beforeEach, vi } from "vitest";

/**
 * Captures the output of each test of a file, instead of printing it.
 *
 * @returns a function that returns the output of the current test
 */
export function capturePrinted(): () => string {
  let printed = "";
  beforeEach(() => {
    printed = "";
    const print = (text: string | Uint8Array) => {
      printed += text;
      return true;
    };
    vi.spyOn(process.stderr, "write").mockImplementation(print);
    vi.spyOn(process.stdout, "write").mockImplementation(print);
  });
  afterEach(() => {
    vi.restoreAllMocks();
  });
  return () => printed;
}
