/**
 * `npm run soak`: checks Weir's promises during minutes of full load, while its store often fails.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { CommanderError } from "commander";
import { parseOptions } from "./options.ts";
import { textOf } from "./report.ts";
import { soak } from "./run.ts";

const interrupted = new AbortController();
// The first Ctrl-C ends the run after its current round, with a report. The second Ctrl-C ends it
// at once.
process.once("SIGINT", () => {
  console.error(
    "The run ends after this round. Press Ctrl-C again to end it now, without a report.",
  );
  interrupted.abort();
});

try {
  const options = parseOptions(process.argv.slice(2));
  const report = await soak(options, (line) => console.error(line), interrupted.signal);
  await mkdir(dirname(options.json), { recursive: true });
  await writeFile(options.json, `${JSON.stringify(report, null, 2)}\n`);
  console.log(
    `${textOf(report)}\n\nClients hung up during ${report.hangUps} more requests. Results: ${options.json}`,
  );
  process.exitCode = report.kept ? 0 : 1;
} catch (error) {
  // Commander has already printed its message.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
