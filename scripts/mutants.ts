/**
 * Changes the code of a folder of `src/`, in one place at a time, and runs the tests that reach the changed code until
 * one fails. Prints the changes that fail no test, and the share of changes that fail one. Stryker does the work.
 *
 * The changes do not reach Workers that a test bundles and starts in a process of its own.
 *
 * Usage: npm run mutants -- --folder engine [--sample 40] [--seed 1] [--mutate src/engine/bans.ts]
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SAMPLE, shuffled } from "./mutant-sample.ts";

const ROOT = join(import.meta.dirname, "..");

/** The files and folders of the tests that must notice a change, for each folder. */
const TESTS: Readonly<Record<string, readonly string[]>> = {
  engine: ["workerd/engine", "workerd/stores/isolate", "workerd/stores/memory-store*.test.ts"],
  stores: ["workerd/stores", "node/stores"],
  limiter: ["workerd/limiter", "workerd/*.test.ts"],
  // Instrumented code is too slow for linear.test.ts, which measures time.
  request: ["workerd/request", "node/request/!(linear).test.ts", "workerd/*.test.ts"],
  http: ["workerd/http", "node/http", "workerd/*.test.ts"],
};

interface MutantResult {
  readonly id: string;
  readonly status: string;
  readonly mutatorName: string;
  readonly replacement: string;
  readonly location: { readonly start: Position; readonly end: Position };
}

interface Position {
  readonly line: number;
  readonly column: number;
}

interface Report {
  readonly files: Readonly<Record<string, { source: string; mutants: readonly MutantResult[] }>>;
}

const { values } = parseArgs({
  options: {
    folder: { type: "string", default: "engine" },
    sample: { type: "string", default: "Infinity" },
    seed: { type: "string", default: "1" },
    mutate: { type: "string" },
  },
});
const { folder, sample, seed } = values;
const tests = TESTS[folder];
if (!tests) throw new Error(`--folder must be one of ${Object.keys(TESTS).join(", ")}`);

const mutate = values.mutate ?? `src/${folder}/**/*.ts,!src/**/*.generated.ts`;
const testFiles = tests.map((each) =>
  each.endsWith(".ts") ? `test/${each}` : `test/${each}/**/*.test.ts`,
);
const args = ["run", "--mutate", mutate, "--testFiles", testFiles.join(",")];
const { status } = spawnSync(join(ROOT, "node_modules/.bin/stryker"), args, {
  cwd: ROOT,
  stdio: "inherit",
  env: { ...process.env, [SAMPLE]: `${sample}:${seed}` },
});
if (status !== 0) process.exit(status ?? 1);

const report: Report = JSON.parse(readFileSync(join(ROOT, "dist/mutants.json"), "utf8"));
const all = Object.entries(report.files).flatMap(([file, { source, mutants }]) =>
  mutants.map((mutant) => ({ ...mutant, file, source })),
);
const sampled = shuffled(all, Number(seed)).slice(0, Number(sample));
const isKilled = ({ status }: MutantResult) => ["Killed", "Timeout"].includes(status);
for (const mutant of sampled.filter((each) => !isKilled(each))) {
  const { file, source, location, replacement } = mutant;
  const { line, column } = location.start;
  console.log(`\n${file}:${line}:${column} ${mutant.status} ${mutant.mutatorName}`);
  console.log(`- ${textAt(source, location)}\n+ ${replacement}`);
}
const killed = sampled.filter(isKilled).length;
const percent = ((100 * killed) / sampled.length).toFixed(1);
console.log(
  `\n${folder}: ${killed} of ${sampled.length} fail a test (${percent} %), of ${all.length}`,
);

/** Returns the part of a source between two positions. Lines and columns count from 1. */
function textAt(source: string, { start, end }: MutantResult["location"]): string {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  lines[lines.length - 1] = lines.at(-1)?.slice(0, end.column - 1) ?? "";
  lines[0] = lines[0]?.slice(start.column - 1) ?? "";
  return lines.join("\n");
}
