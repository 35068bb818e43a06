declare namespace Cloudflare {
  interface GlobalProps {
    // The type of `exports.default`.
    mainModule: typeof import("../src/index.ts");
  }
}
