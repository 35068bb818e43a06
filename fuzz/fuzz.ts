import { CommanderError } from "commander";
import { parseOptions } from "./options.ts";
import type { Target } from "./target.ts";

const NAMES = [
  "config",
  "paths",
  "spellings",
  "sent",
  "keys",
  "cookies",
  "fields",
  "problem",
  "reply",
  "tokens",
  "costs",
  "script",
];

/**
 * Imports a target by a name that the compiler does not know, because a target with code for workerd needs other types.
 */
async function loadTarget(name: string): Promise<Target> {
  return (await import(`./targets/${name}.ts`))[`${name}Target`];
}

try {
  const all = await Promise.all(NAMES.map(loadTarget));
  const { targets, cases, seed } = parseOptions(process.argv.slice(2), all);
  for (const target of targets) {
    const startedAt = performance.now();
    const outcome = await target.check({ cases, seed });
    const seconds = (performance.now() - startedAt) / 1000;
    const { finding, note = "" } = outcome;
    const figures = `${outcome.cases.toLocaleString("en")} cases in ${seconds.toFixed(1)} s`;
    const verdict = finding ? "A FINDING" : "nothing found";
    console.log(`${target.name}: ${figures}, seed ${seed}: ${verdict}${note && ` (${note})`}`);
    if (!finding) continue;
    console.log(`  ${finding.what}\n  smallest case: ${finding.smallest}`);
    console.log(
      `  to repeat: npm run fuzz -- --target ${target.name} --cases ${cases} --seed ${seed}`,
    );
    process.exitCode = 1;
  }
} catch (error) {
  // Commander has printed the problem already.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
