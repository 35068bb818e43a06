import { createServer } from "node:net";
import { expect, it } from "vitest";
import { listen } from "../../../dev/loopback.ts";
import { register } from "../../../dev/running.ts";
import { temporaryFolder } from "../cli/run-weir.ts";

/** Stands in for the proxy of a run. */
async function startRun() {
  const { port, stop } = await listen(createServer());
  return { url: `http://127.0.0.1:${port}`, stop };
}

it("tells a second run in the same folder where the first listens", async () => {
  await using folder = await temporaryFolder();
  const [first, second] = [await startRun(), await startRun()];
  const registered = await register(first.url, folder.path);
  expect(registered.other).toBeUndefined();
  const refused = await register(second.url, folder.path);
  expect(refused.other?.url).toBe(first.url);
  // The end of the second run does not end the registration of the first.
  await refused.stop();
  expect((await register(second.url, folder.path)).other?.url).toBe(first.url);
  await registered.stop();
  expect((await register(second.url, folder.path)).other).toBeUndefined();
  await Promise.all([first.stop(), second.stop()]);
});

it("gives the folder to the next run after a run that was killed", async () => {
  await using folder = await temporaryFolder();
  const [killed, next] = [await startRun(), await startRun()];
  await register(killed.url, folder.path);
  await killed.stop();
  expect((await register(next.url, folder.path)).other).toBeUndefined();
  // The next run may also have the port of the killed one.
  expect((await register(next.url, folder.path)).other).toBeUndefined();
  await next.stop();
});

it("gives the folder to one of two runs that start at the same time", async () => {
  await using folder = await temporaryFolder();
  const runs = [await startRun(), await startRun()];
  const registered = await Promise.all(runs.map(({ url }) => register(url, folder.path)));
  expect(registered.filter(({ other }) => other === undefined)).toHaveLength(1);
  await Promise.all(runs.map(({ stop }) => stop()));
});
