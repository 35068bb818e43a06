import type { NodeGlobals } from "./node-globals.ts";

/**
 * Returns the text of a fault, or the result of a function that builds it. In a minified bundle of
 * `wrangler deploy`, esbuild empties this function and removes the arguments of its calls, which would take
 * 5 KiB of the bundle after gzip. There, the result is undefined. `weir check` has already printed the
 * texts.
 *
 * esbuild cannot remove an argument that calls something, so texts with calls or variables are functions.
 * It keeps functions and constants that only such an argument uses, so they stand in the argument.
 */
export function faultText(text: string | (() => string)): string;
export function faultText(text: string | (() => string)): string | undefined {
  if ((globalThis as NodeGlobals).process?.env?.NODE_ENV !== "production") {
    return typeof text === "function" ? text() : text;
  }
  return;
}
