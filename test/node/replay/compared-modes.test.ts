import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReplayReport } from "../../../cli/replay/report.ts";
import { callWeir, temporaryFolder } from "../cli/run-weir.ts";
import { generateLog, logText } from "./generated-log.ts";

const RULE = { name: "per-ip", limit: 10, window: "1m" };
const configOf = (more: object) => JSON.stringify({ rules: [{ ...RULE, ...more }] });

let folder: Awaited<ReturnType<typeof temporaryFolder>>;

beforeAll(async () => {
  folder = await temporaryFolder();
  await folder.write("access.log", logText(generateLog(3000)));
  await folder.write("enforce.config.json", configOf({}));
  await folder.write("shadow.config.json", configOf({ mode: "shadow" }));
  await folder.write("key.config.json", configOf({ key: "header:x-api-key" }));
  await folder.write(
    "shadow-key.config.json",
    configOf({ key: "header:x-api-key", mode: "shadow" }),
  );
});

afterAll(() => folder[Symbol.asyncDispose]());

const replay = (...args: string[]) => callWeir(["replay", "access.log", ...args], folder.path);
const COMPARED = ["--config", "enforce.config.json", "--against", "shadow.config.json"];

describe("a rule that leaves the mode shadow", () => {
  it("has denied nothing before, so that all its denials are new", async () => {
    const { stdout } = await replay(...COMPARED, "--json");
    const { comparison, total }: ReplayReport = JSON.parse(stdout);
    expect(total.denied).toBeGreaterThan(300);
    expect(comparison?.before.denied).toBe(0);
    expect(comparison?.requests.newlyDenied).toBe(total.denied);
  });
});

describe("a comparison", () => {
  it("is noted as not fair if a rule is left out of one configuration", async () => {
    const compared = ["--config", "key.config.json", "--against", "enforce.config.json"];
    const [now, before] = [compared, [...compared].map((each) => each)];
    [before[1], before[3]] = [compared[3] ?? "", compared[1] ?? ""];
    for (const args of [now, before]) {
      const { stdout } = await replay(...args);
      expect(stdout.replace(/\s+/g, " ")).toContain(
        'The rule "per-ip" is left out of key.config.json alone. So the comparison is not fair',
      );
    }
    const { stdout } = await replay("--config", "key.config.json", "--against", "key.config.json");
    expect(stdout).not.toContain("not fair");
  });
});

describe("a bound", () => {
  it("cannot be checked while an enforced rule is left out", async () => {
    const bound = ["--config", "key.config.json", "--max-denied", "0"];
    const { code, stderr } = await replay(...bound);
    expect(code).toBe(2);
    expect(stderr).toContain('The rule "per-ip" is left out.');
    expect(stderr).toContain("--missing-as-absent");
    expect((await replay(...bound, "--missing-as-absent")).code).toBe(1);
  });

  it("covers --max-newly-denied, too", async () => {
    const compared = ["--config", "key.config.json", "--against", "enforce.config.json"];
    expect((await replay(...compared, "--max-newly-denied", "0")).code).toBe(2);
    expect((await replay(...compared)).code).toBe(0);
  });

  it("does not need rules in shadow mode, which deny nothing", async () => {
    const { code } = await replay("--config", "shadow-key.config.json", "--max-denied", "0");
    expect(code).toBe(0);
  });
});
