/** `npm run dev` and `npm run dev:redis`: Weir on this machine, with all that it needs beside it. */
import { CommanderError } from "commander";
import getPort from "get-port";
import { choosePort, DEFAULT_PORT } from "./free-port.ts";
import { startFront } from "./front.ts";
import { linesToTry } from "./lines-to-try.ts";
import { type DevOptions, parseOptions } from "./options.ts";
import { embeddedStore, type Part, startOrigin, startRedisStore } from "./parts.ts";
import { stopRequest } from "./stop-request.ts";
import { startWrangler } from "./wrangler.ts";

process.exitCode = await main(process.argv.slice(2));

/** What has to be ended again, in the order in which it was started. */
type Started = Pick<Part, "stop">[];

/** @returns the exit code: 0 when it was told to end. */
async function main(args: string[]): Promise<number> {
  const started: Started = [];
  try {
    return await run(parseOptions(args), started);
  } catch (error) {
    // The parser has printed its own error, or the help.
    if (error instanceof CommanderError) return error.exitCode;
    console.error(`error: ${error instanceof Error ? error.message : error}`);
    return 1;
  } finally {
    // The last one first: nothing is taken away from under what still uses it.
    for (const part of started.reverse()) await part.stop();
  }
}

async function run(options: DevOptions, started: Started): Promise<number> {
  const stopRequested = stopRequest();

  const port = await choosePort(options.port);
  if (options.port === undefined && port !== DEFAULT_PORT) {
    console.log(`Port ${DEFAULT_PORT} is in use: taking ${port}.`);
  }
  const behind = { host: "127.0.0.1", port: await getPort({ host: "127.0.0.1" }) };
  // First of all, for the port to be had.
  const front = await startFront(behind, { port });
  started.push(front);
  const origin = await startOrigin(options.origin);
  started.push(origin);
  const store = options.redis ? await startRedisStore() : embeddedStore();
  started.push(store);
  const wrangler = await startWrangler({
    port: behind.port,
    vars: { ...origin.vars, ...store.vars },
  });
  started.push(wrangler);

  let answered = false;
  const ended = new AbortController();
  const announced = wrangler.untilAnswering(ended.signal).then(
    () => {
      answered = true;
      const { url } = front;
      console.log(linesToTry({ url, origin: origin.description, store: store.description }));
    },
    () => {},
  );
  const end = await Promise.race([stopRequested, wrangler.exited]);
  ended.abort();
  await announced;
  if (end === "stop") return 0;

  const code = end.code ?? 1;
  if (answered) {
    console.error("wrangler dev ended.");
    return code;
  }
  console.error("wrangler dev ended before the Worker answered.");
  return code || 1;
}
