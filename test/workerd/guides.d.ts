/** The configuration on the page docs/guides/NAME.md. See dev/vitest-guides.ts. */
declare module "guide:*" {
  const config: import("../../src/config/index.ts").Config;
  export default config;
}
