import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callWeir, temporaryFolder } from "./run-weir.ts";

const NAME = "a\u001b[31mb\u009b";

let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  folder = await temporaryFolder();
  const line = '192.0.2.1 - - [22/Nov/2026:08:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "curl/8"';
  await folder.write("access.log", `${line}\n`);
  await folder.write(`${NAME}.log`, `${line}\nbroken\n`);
  const rules = [{ name: "per-ip", limit: 10, window: "1m" }];
  await folder.write("weir.config.json", JSON.stringify({ rules }));
  await folder.write(`${NAME}.json`, JSON.stringify({ rules }));
  await folder.write(`faulty${NAME}.json`, JSON.stringify({ rules: [{ name: "a" }] }));
  await folder.write(`throws${NAME}.mjs`, "throw new Error('\\u001b[31m');");
  await mkdir(join(folder.path, `folder${NAME}`));
});

afterAll(() => folder[Symbol.asyncDispose]());

describe("names of files with codes for a terminal", () => {
  const CONFIG = ["--config", "weir.config.json"];

  it.each([
    ["replay", `none${NAME}`, ...CONFIG],
    ["replay", `folder${NAME}`, ...CONFIG],
    ["replay", `${NAME}.log`, ...CONFIG],
    ["replay", "access.log", "--config", `none${NAME}`],
    ["replay", "access.log", "--config", `faulty${NAME}.json`],
    ["replay", "access.log", "--config", `throws${NAME}.mjs`],
    ["replay", "access.log", "--config", `${NAME}.json`, "--against", `${NAME}.json`],
    ["suggest", `none${NAME}`],
    ["suggest", `${NAME}.log`],
    ["check", "--config", `none${NAME}`],
    ["check", "--config", `${NAME}.json`],
    ["check", "--config", `faulty${NAME}.json`],
  ])("are printed without the codes: %j %j %j", async (...args) => {
    for (const form of [[], ["--json"]]) {
      const { stdout, stderr } = await callWeir([...args, ...form], folder.path);
      expect(stdout + stderr).toContain("[31mb");
      for (const character of "\u001b\u009b") expect(stdout + stderr).not.toContain(character);
    }
  });
});
