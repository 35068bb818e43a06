import { CommanderError } from "commander";
import { parseOptions } from "./options.ts";
import { configTarget } from "./targets/config.ts";
import { fieldsTarget } from "./targets/fields.ts";
import { keysTarget } from "./targets/keys.ts";
import { pathsTarget } from "./targets/paths.ts";
import { replyTarget } from "./targets/reply.ts";
import { scriptTarget } from "./targets/script.ts";
import { spellingsTarget } from "./targets/spellings.ts";

const TARGETS = [
  configTarget,
  pathsTarget,
  spellingsTarget,
  keysTarget,
  fieldsTarget,
  replyTarget,
  scriptTarget,
];

try {
  const { targets, cases, seed } = parseOptions(process.argv.slice(2), TARGETS);
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
    console.log(`  again: npm run fuzz -- --target ${target.name} --cases ${cases} --seed ${seed}`);
    process.exitCode = 1;
  }
} catch (error) {
  // Commander has said what is wrong already.
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : 2;
  else {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 2;
  }
}
