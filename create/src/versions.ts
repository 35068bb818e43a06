/** The versions of the tools in a new project. A test compares them with the versions with which Weir is tested. */

/** The tools of a new project, for some versions of Node. */
export interface Toolchain {
  /** The package that runs tests in workerd. Its name has changed. */
  readonly testPlugin: string;
  /** The devDependencies of a project's package.json. */
  readonly devDependencies: Readonly<Record<string, string>>;
  /** Whether wrangler reads `exports`. Before 4.107, it ignores this field with a warning. */
  readonly hasExports: boolean;
  /** The newest date that the project's workerd supports. */
  readonly compatibilityDate: string;
}

/** The range of hono that Weir accepts. */
export const HONO = "^4.13.0";

/**
 * The tools for Node 22.12 and newer. wrangler and the test plugin have exact versions, because
 * each version of the plugin installs one version of wrangler. With any other wrangler, the project
 * would have two copies of workerd, with 100 MB each. vitest has no newer minor version than the one
 * with which Weir is tested, because vitest 5.1 prints warnings with this plugin.
 */
export const CURRENT: Toolchain = {
  testPlugin: "@cloudflare/vitest-plugin",
  devDependencies: {
    "@cloudflare/vitest-plugin": "1.5.0",
    "@cloudflare/workers-types": "^5.20261107.1",
    typescript: "^7.0.2",
    vitest: "~5.0.5",
    wrangler: "4.156.2",
  },
  hasExports: true,
  compatibilityDate: "2026-11-01",
};

/**
 * The tools for Node 20, from 20.19 on. wrangler 4.87 and vitest 5 refuse Node 20. For this older wrangler, the test
 * plugin exists only under its older name.
 */
export const NODE_20: Toolchain = {
  testPlugin: "@cloudflare/vitest-pool-workers",
  devDependencies: {
    "@cloudflare/vitest-pool-workers": "0.15.1",
    "@cloudflare/workers-types": "^4.20260426.1",
    typescript: "^7.0.2",
    vitest: "~4.1.12",
    wrangler: "4.86.0",
  },
  hasExports: false,
  compatibilityDate: "2026-04-26",
};

/** @param nodeVersion such as `22.12.0` */
export function toolchainFor(nodeVersion: string): Toolchain {
  return isAtLeast(nodeVersion, "22.12") ? CURRENT : NODE_20;
}

/**
 * Whether a version is not older than another. Ranges and tags are no versions.
 *
 * @param version such as `4.86.0`
 * @param minimum such as `4.87`; missing parts count as 0
 */
export function isAtLeast(version: string, minimum: string): boolean {
  const parts = version.split(".").map((part) => Number.parseInt(part, 10));
  const needed = minimum.split(".").map(Number);
  const index = parts.findIndex((part, at) => part !== (needed[at] ?? 0));
  return index === -1 || (parts[index] as number) > (needed[index] ?? 0);
}
