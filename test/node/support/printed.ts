import { afterEach, beforeEach, vi } from "vitest";

/** Keeps from the terminal what each test of a file prints. @returns a function that tells it */
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
