/**
 * The global scope, with the one value that Weir reads to recognise a bundle for development.
 *
 * Bundlers replace `globalThis.process?.env?.NODE_ENV` by a constant: "development" under `wrangler dev`,
 * "production" under `wrangler deploy`. Then esbuild removes the code behind a false comparison, and the
 * functions that only this code calls. So the comparison is written out wherever it is needed: if it were
 * a constant or a function of this module, esbuild would not remove the code. In a bundle in which nothing
 * replaces the expression, `process` may be missing, so the expression contains `?.`.
 */
export interface NodeGlobals {
  readonly process?: { readonly env?: { readonly NODE_ENV?: string } };
}
