import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import getPort, { portNumbers } from "get-port";
import { type OwnedChild, startChild } from "./child.ts";

const HOST = "127.0.0.1";

/** A `wrangler dev` that runs the Worker. */
export type Wrangler = OwnedChild & {
  url: string;
  /** Resolves once the Worker answers; rejects with the signal's reason if that comes first. */
  untilAnswering(signal: AbortSignal): Promise<void>;
};

/**
 * Starts the `wrangler dev` of this project on loopback, printing where this process prints.
 *
 * @param vars the Worker's vars. They win over `wrangler.toml`, `.dev.vars` and `.env`, also when
 * they are empty.
 */
export async function startWrangler(options: {
  port: number;
  vars: Record<string, string>;
}): Promise<Wrangler> {
  const { port, vars } = options;
  const require = createRequire(import.meta.url);
  const program = join(dirname(require.resolve("wrangler/package.json")), "bin/wrangler.js");
  // Wrangler stops when its usual inspector port is in use, by another project for instance.
  const inspectorPort = await getPort({ host: HOST, port: portNumbers(9229, 9329) });

  const child = await startChild(
    process.execPath,
    [
      program,
      "dev",
      ...["--ip", HOST, "--port", `${port}`, "--inspector-port", `${inspectorPort}`],
      "--show-interactive-dev-session=false",
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
      // Any status will do. No deadline: while the Worker does not compile, wrangler holds the
      // request until it does.
      const response = await fetch(url, { signal, redirect: "manual" });
      await response.body?.cancel();
      return;
    } catch {
      signal.throwIfAborted();
      await delay(100, undefined, { signal });
    }
  }
}
