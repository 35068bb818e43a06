import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import getPort, { portNumbers } from "get-port";
import { type OwnedChild, startChild } from "./child.ts";

const HOST = "127.0.0.1";

/** A running `wrangler dev`. */
export interface Wrangler extends OwnedChild {
  readonly url: string;
  /**
   * Resolves when the Worker answers. If `signal` is aborted first, rejects with the signal's
   * reason.
   */
  untilAnswering(signal: AbortSignal): Promise<void>;
}

/**
 * Starts `wrangler dev` for this project on loopback. Its output goes to the output of this process.
 *
 * @param options.vars the Worker's vars. Each var overrides its value in `wrangler.toml`,
 *   `.dev.vars` and `.env`, even if the new value is empty
 * @param options.state the folder of the Durable Objects' data; undefined for wrangler's default
 * @param options.quiet whether wrangler prints only warnings and errors, and no line for each request
 */
export async function startWrangler(options: {
  port: number;
  vars: Record<string, string>;
  quiet?: boolean;
  state?: string | undefined;
}): Promise<Wrangler> {
  const { port, vars, quiet = false, state } = options;
  const require = createRequire(import.meta.url);
  const program = join(dirname(require.resolve("wrangler/package.json")), "bin/wrangler.js");
  // Wrangler ends if its default inspector port is in use, for example by another project.
  const inspectorPort = await getPort({ host: HOST, port: portNumbers(9229, 9329) });

  const child = await startChild(
    process.execPath,
    [
      program,
      "dev",
      ...["--ip", HOST, "--port", `${port}`, "--inspector-port", `${inspectorPort}`],
      "--show-interactive-dev-session=false",
      ...(quiet ? ["--log-level", "warn"] : []),
      ...(state ? ["--persist-to", state] : []),
      ...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]),
    ],
    {
      cwd: dirname(import.meta.dirname),
      env: { ...process.env, WRANGLER_SEND_METRICS: "false" },
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  const url = `http://${HOST}:${port}`;
  return { ...child, url, untilAnswering: (signal) => untilAnswering(url, signal) };
}

async function untilAnswering(url: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      // Any status is an answer. The request has no deadline, because wrangler delays it while the
      // Worker does not compile.
      const response = await fetch(url, { signal, redirect: "manual" });
      await response.body?.cancel();
      return;
    } catch {
      signal.throwIfAborted();
      await delay(100, undefined, { signal });
    }
  }
}
