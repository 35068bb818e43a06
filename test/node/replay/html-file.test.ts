import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CommandFailure } from "../../../cli/command-failure.ts";
import { checkHtmlFile, writeHtmlFile } from "../../../cli/replay/html-file.ts";
import { callWeir, temporaryFolder } from "../cli/run-weir.ts";
import { generateLog, logText } from "./generated-log.ts";

const PAGE = "<!doctype html>new";
const OLDER = "<!doctype html>older";
const NEVER = new AbortController().signal;

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const pathOf = (name: string) => join(folder.path, name);
const contentOf = (name: string) => readFile(pathOf(name), "utf8");

beforeEach(async () => {
  folder = await temporaryFolder();
  await folder.write("report.html", OLDER);
  await folder.write("access.log", logText(generateLog(20)));
  const rules = [{ name: "per-ip", limit: 10, window: "1m" }];
  await folder.write("weir.config.json", JSON.stringify({ store: "memory", rules }));
});

afterEach(async () => {
  await folder[Symbol.asyncDispose]();
});

describe("the file of --html", () => {
  it("is left as it is, with no other file, by the check", async () => {
    const before = await readdir(folder.path);
    for (const name of ["report.html", "new.html"]) await checkHtmlFile(pathOf(name));
    expect(await readdir(folder.path)).toEqual(before);
    expect(await contentOf("report.html")).toBe(OLDER);
  });

  it.each(["", "access.log", "weir.config.json", "html"])("must not be %j", async (name) => {
    const error = await checkHtmlFile(name).catch((reason) => reason);
    expect(error).toBeInstanceOf(CommandFailure);
    expect([error.exitCode, error.message]).toEqual([1, expect.stringContaining("ends in .html")]);
  });

  it("is printed without codes for a terminal", async () => {
    const error = await checkHtmlFile(pathOf("none/a\u001b[31mb.html")).catch((reason) => reason);
    expect(error.exitCode).toBe(2);
    expect(error.message).not.toContain("\u001b");
  });

  it("replaces an older page", async () => {
    await writeHtmlFile(pathOf("report.html"), PAGE, NEVER);
    expect(await contentOf("report.html")).toBe(PAGE);
  });

  it("is not written after a signal, and nothing is left behind", async () => {
    const before = await readdir(folder.path);
    await writeHtmlFile(pathOf("report.html"), PAGE.repeat(100_000), AbortSignal.abort());
    expect(await contentOf("report.html")).toBe(OLDER);
    expect(await readdir(folder.path)).toEqual(before);
  });

  it("stays as it is, and nothing is left behind, if it cannot be written", async () => {
    await mkdir(pathOf("folder.html"));
    const before = await readdir(folder.path);
    const error = await writeHtmlFile(pathOf("folder.html"), PAGE, NEVER).catch((reason) => reason);
    expect([error.exitCode, error.message]).toEqual([2, expect.stringContaining("cannot be")]);
    expect(await readdir(folder.path)).toEqual(before);
  });
});

describe("a report with a page", () => {
  it("is printed once, and exits with 2, if the page cannot be written", async () => {
    await mkdir(pathOf("folder.html"));
    const run = await callWeir(
      ["replay", "access.log", "--config", "weir.config.json", "--html", "folder.html", "--json"],
      folder.path,
    );
    expect(run).toMatchObject({ code: 2, stderr: expect.stringContaining("cannot be written") });
    expect(JSON.parse(run.stdout)).toMatchObject({ version: 1, total: { requests: 20 } });
  });

  it.each(["access.log", "weir.config.json"])("does not replace the input %s", async (html) => {
    const before = await contentOf(html);
    const run = await callWeir(
      ["replay", "access.log", "--config", "weir.config.json", "--html", html, "--json"],
      folder.path,
    );
    expect(run.code).toBe(1);
    expect(JSON.parse(run.stdout).error).toContain(`--html ${html}: the name of a page ends in`);
    expect(await contentOf(html)).toBe(before);
  });
});
