/** The configuration of a page or of one of its sections. See dev/vitest-guides.ts. */
declare module "guide:*" {
  const config: import("../../src/config/index.ts").Config;
  export default config;
}
