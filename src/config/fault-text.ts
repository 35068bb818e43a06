import type { NodeGlobals } from "./node-globals.ts";

/**
 * Returns the text of a fault. The argument is the text, or a function that builds the text. In a minified
 * bundle of `wrangler deploy`, the result is undefined: esbuild empties this function and removes the
 * arguments of its calls. This saves 5 KiB of the bundle after gzip, and `weir check` has already printed
 * the texts.
 *
 * esbuild keeps an argument that contains a call or a variable, so write such a text as a function.
 * esbuild also keeps functions and constants that are declared outside of the argument. If no other code
 * uses them, declare them inside of it.
 */
export function faultText(text: string | (() => string)): string;
export function faultText(text: string | (() => string)): string | undefined {
  if ((globalThis as NodeGlobals).process?.env?.NODE_ENV !== "production") {
    return typeof text === "function" ? text() : text;
  }
  return;
}
