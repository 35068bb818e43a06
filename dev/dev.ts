/** `npm run dev` and `npm run dev:redis` run Weir on this machine, with its origin and store. */
import { CommanderError } from "commander";
import getPort from "get-port";
import { devToken } from "./admin-token.ts";
import { configProblem } from "./config-problem.ts";
import {
  createEmbeddedStore,
  type Dependency,
  startOrigin,
  startRedisStore,
} from "./dependencies.ts";
import { startDevProxy } from "./dev-proxy.ts";
import { choosePort, DEFAULT_PORT } from "./free-port.ts";
import { linesToTry } from "./lines-to-try.ts";
import { type DevOptions, parseOptions } from "./options.ts";
import { register } from "./running.ts";
import { waitForStopRequest } from "./stop-request.ts";
import { startTraffic } from "./traffic/traffic.ts";
import { startWrangler } from "./wrangler.ts";

process.exitCode = await main(process.argv.slice(2));

/** The processes and servers to stop, in the order in which they were started. */
type Started = Pick<Dependency, "stop">[];

/** @returns the exit code: 0 after a request to stop */
async function main(args: string[]): Promise<number> {
  const started: Started = [];
  try {
    return await run(parseOptions(args), started);
  } catch (error) {
    // The parser has printed its error or the help already.
    if (error instanceof CommanderError) return error.exitCode;
    console.error(`error: ${error instanceof Error ? error.message : error}`);
    return 1;
  } finally {
    // Processes and servers are stopped in reverse order, because each may use earlier ones.
    for (const each of started.reverse()) await each.stop();
  }
}

async function run(options: DevOptions, started: Started): Promise<number> {
  const stopRequested = waitForStopRequest();

  const port = await choosePort(options.port);
  if (options.port === undefined && port !== DEFAULT_PORT) {
    console.log(`Port ${DEFAULT_PORT} is in use. Weir listens on ${port}.`);
  }
  const target = { host: "127.0.0.1", port: await getPort({ host: "127.0.0.1" }) };
  // The proxy starts first, before another process can take the port.
  const proxy = await startDevProxy(target, { port, whyHeld: configProblem });
  started.push(proxy);
  const registration = await register(proxy.url);
  started.push(registration);
  const { other } = registration;
  if (other) {
    console.log(
      `npm run dev already runs in this folder, at ${other.url}. Until it ends, this run has counters, statistics and overrides of its own. If you do not need two, stop one with Ctrl-C.`,
    );
  }
  const origin = await startOrigin(options.origin);
  started.push(origin);
  const store = options.redis ? await startRedisStore() : createEmbeddedStore();
  started.push(store);
  const token = devToken();
  const wrangler = await startWrangler({
    port: target.port,
    vars: { ...origin.vars, ...store.vars, ...token.vars },
    quiet: options.traffic,
    state: other?.ownState,
  });
  started.push(wrangler);

  let answered = false;
  const ended = new AbortController();
  const announcement = wrangler.untilAnswering(ended.signal).then(
    async () => {
      answered = true;
      const { url } = proxy;
      const { traffic } = options;
      if (traffic) started.push(await startTraffic(url, token.value));
      const run = { url, origin: origin.description, store: store.description, token, traffic };
      console.log(linesToTry(run));
    },
    () => {},
  );
  const end = await Promise.race([stopRequested, wrangler.exited]);
  ended.abort();
  await announcement;
  if (end === "stop") return 0;

  const code = end.code ?? 1;
  if (answered) {
    console.error("wrangler dev ended.");
    return code;
  }
  console.error("wrangler dev ended before the Worker answered.");
  return code || 1;
}
