/**
 * `npm run try:starter`: uses the packed packages as a user does, with the oldest and the newest Node that Weir supports.
 * For each Node, it creates a project of each template with npm, and adds Weir to a Hono app; for the newest Node, also
 * with pnpm and yarn. It copies each result to another folder without node_modules, as `git clone` does. There it
 * installs the locked packages, runs the check, the tests and the compiler, starts `npm run dev` while the port 8787 is
 * in use, and sends six logins to the address that the output names.
 *
 * It fails if the sixth login does not get 429, if a command fails, or if an installation prints a warning. It needs the
 * npm registry, and takes some minutes. Run `npm run pack` first.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, delimiter, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { TEMPLATES } from "../create/src/fields.ts";

/** Each Node with its own npm. */
const VERSIONS = [
  { node: "20.19.6", npm: "10.8.2" },
  { node: "22.12.0", npm: "10.9.0" },
  { node: "24.21.0", npm: "11.19.1" },
];

/** The beginning of the versions of Node to try: `npm run try:starter -- 24`. */
const [ONLY = ""] = process.argv.slice(2);

/** The other package managers, and the command of each that installs the locked packages. */
const OTHERS = {
  pnpm: { version: "10", locked: ["install", "--frozen-lockfile"] },
  yarn: { version: "1", locked: ["install", "--frozen-lockfile"] },
} as const;

/** The maximum duration of each command, and of the start of `npm run dev`, in milliseconds. */
const START_MS = 300_000;

const DIST = join(import.meta.dirname, "../dist");
const VERSION = process.env.npm_package_version ?? "0.1.0";
const WEIR = join(DIST, `edge-weir-${VERSION}.tgz`);
const STARTER = `file:${join(DIST, `create-edge-weir-${VERSION}.tgz`)}`;

/** A Hono app as `npm create hono` writes it, without comments. Newer versions of wrangler refuse Node 20. */
const honoApp = (node: string): Readonly<Record<string, string>> => ({
  "package.json": JSON.stringify({
    type: "module",
    scripts: { dev: "wrangler dev" },
    dependencies: { hono: "^4.13.3" },
    devDependencies: { wrangler: node.startsWith("20.") ? "4.86.0" : "^4.110.0" },
  }),
  "wrangler.jsonc": JSON.stringify({
    name: "app",
    main: "src/index.ts",
    compatibility_date: "2025-08-03",
  }),
  "src/index.ts": "import { Hono } from 'hono'\n\nconst app = new Hono()\n\nexport default app\n",
});

// A program on the default port of wrangler.
const other = createServer()
  .on("error", () => {})
  .listen(8787);
const scratch = await mkdtemp(join(tmpdir(), "try-starter-"));
try {
  for (const { node, npm } of VERSIONS.filter(({ node }) => node.startsWith(ONLY))) {
    const env = await environmentOf(node, npm);
    const isNewest = node === VERSIONS.at(-1)?.node;
    for (const manager of ["npm", ...(isNewest ? (["pnpm", "yarn"] as const) : [])] as const) {
      for (const template of TEMPLATES) {
        const name = `Node ${node}, ${manager}, ${template}`;
        const folder = join(scratch, node, manager, template);
        await mkdir(folder, { recursive: true });
        if (template === "hono") await writeHonoApp(folder, node);
        await tryIn({ folder, name, template, manager, env });
      }
    }
  }
} finally {
  other.close();
  await rm(scratch, { recursive: true, force: true });
}

async function writeHonoApp(folder: string, node: string): Promise<void> {
  await mkdir(join(folder, "src"));
  for (const [path, text] of Object.entries(honoApp(node))) {
    await writeFile(join(folder, path), text);
  }
}

/** Installs a Node and the package managers, and returns an environment that prefers them. */
async function environmentOf(node: string, npm: string): Promise<NodeJS.ProcessEnv> {
  const folder = join(scratch, `node-${node}`);
  await mkdir(folder);
  const platform = `node-${process.platform}-${process.arch}`;
  const args = ["install", "--ignore-scripts", "--prefix", folder];
  const managers = Object.entries(OTHERS).map(([name, { version }]) => `${name}@${version}`);
  await promisify(execFile)("npm", [...args, `${platform}@${node}`, `npm@${npm}`, ...managers]);
  const commands = join(folder, "node_modules/.bin");
  await rm(join(commands, "node"), { force: true });
  await symlink(join(folder, "node_modules", platform, "bin/node"), join(commands, "node"));
  // The other npm must not get the variables and the settings of this repository.
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^(npm_(lifecycle|package|command|execpath|node|config_(local|strict|loglevel))|INIT_CWD)/.test(
        name,
      ),
  );
  return {
    ...Object.fromEntries(inherited),
    PATH: [commands, process.env.PATH].join(delimiter),
    WRANGLER_SEND_METRICS: "false",
  };
}

interface Trial {
  readonly folder: string;
  readonly name: string;
  readonly template: (typeof TEMPLATES)[number];
  readonly manager: "npm" | keyof typeof OTHERS;
  readonly env: NodeJS.ProcessEnv;
}

/** Runs the starter in a folder, and uses a copy of the result. */
async function tryIn({ folder, name, template, manager, env }: Trial): Promise<void> {
  const isApp = template === "hono";
  const create = ["--yes", `--package=${STARTER}`, "create-edge-weir", "--edge-weir", WEIR];
  create.push("--template", template, "--package-manager", manager, "--yes");
  await install("npx", create, folder);

  const clone = `${folder}-clone`;
  const filter = (path: string) => !["node_modules", ".wrangler"].includes(basename(path));
  await cp(folder, clone, { recursive: true, filter });
  await rm(folder, { recursive: true });
  await install(manager, manager === "npm" ? ["ci"] : OTHERS[manager].locked, clone);
  if (isApp) await runIn(clone, "node_modules/.bin/weir", ["check", "--strict"]);
  else for (const script of ["check", "test"]) await runIn(clone, manager, ["run", script]);
  const statuses = await sixLoginsInDev(clone);
  console.log(`${name}: ${statuses.join(" ")}`);
  const expected = [...Array(5).fill(isApp ? "404" : "200"), "429"];
  if (statuses.join() !== expected.join()) throw new Error(`${name}: wrong statuses`);

  async function install(command: string, args: readonly string[], cwd: string): Promise<void> {
    const printed = await runIn(cwd, command, args);
    // npm also warns about settings of the machine.
    const own = printed.replaceAll(/^npm warn Unknown (env|user) config .*$/gim, "");
    if (/EBADENGINE|\bwarn(ing)?\b/i.test(own)) throw new Error(`${name}: ${printed}`);
  }

  async function runIn(cwd: string, command: string, args: readonly string[]): Promise<string> {
    const running = promisify(execFile)(command, args, { cwd, env, timeout: START_MS });
    const { stdout, stderr } = await running.catch((error) => {
      throw new Error(`${name}: ${error.message}\n${error.stdout}`);
    });
    return stdout + stderr;
  }

  /** Sends six logins to the address that `dev` prints, and returns their statuses. */
  async function sixLoginsInDev(cwd: string): Promise<string[]> {
    const dev = spawn(manager, ["run", "dev"], {
      cwd,
      env,
      // A process group of its own, so that wrangler and workerd end with it.
      detached: true,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let output = "";
    for (const stream of [dev.stdout, dev.stderr]) stream.on("data", (text) => (output += text));
    const ended = once(dev, "exit");
    try {
      const address = isApp ? /Ready on (http:\S+)/ : /-X POST (http:\S+)\/login/;
      const deadline = Date.now() + START_MS;
      while (!address.test(output)) {
        if (Date.now() > deadline) throw new Error(`${name}: dev does not start: ${output}`);
        await delay(200);
      }
      const [, url = ""] = address.exec(output) ?? [];
      const tables = output.match(/RULE /g)?.length ?? 0;
      if (!isApp && tables !== 1) throw new Error(`${name}: ${tables} tables: ${output}`);
      return await sixLogins(url);
    } finally {
      process.kill(-(dev.pid as number), "SIGTERM");
      await ended;
    }
  }
}

/** Sends six logins, and returns their statuses. */
async function sixLogins(url: string): Promise<string[]> {
  const statuses: string[] = [];
  for (let count = 0; count < 6; count++) {
    statuses.push(`${(await fetch(`${url}/login`, { method: "POST" })).status}`);
  }
  return statuses;
}
