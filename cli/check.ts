import type { Command } from "commander";
import ipaddr from "ipaddr.js";
import { type LoadedConfig, loadConfig } from "./load-config.ts";
import { withoutSecrets } from "./redaction.ts";
import { ruleTable } from "./rule-table.ts";
import { warningsOf } from "./warnings/all.ts";
import type { Warning } from "./warnings/warning.ts";

interface CheckOptions {
  readonly config: string;
  readonly json?: true;
  readonly strict?: true;
}

/**
 * Adds the command `check`, which checks a configuration. It exits with 0 if the configuration is
 * valid. If not, it prints all faults and exits with 1. It prints the rules of a valid
 * configuration as Weir reads them, because a valid rule may still differ from the intention of its
 * author. It also prints warnings about ways around the rules. Warnings change the exit code only
 * with `--strict`, so that they do not stop a deploy.
 */
export function addCheckCommand(program: Command): void {
  program
    .command("check")
    .description("Checks the rules. Prints all faults, or the rules as Weir reads them.")
    .option("--config <file>", "a .ts, .js, .mjs or .json file", "weir.config.ts")
    .option("--json", "print JSON")
    .option("--strict", "exit with 1 if there are warnings")
    .action(async ({ config: file, json, strict }: CheckOptions) => {
      const loaded = await loadConfig(file);
      const warnings = loaded.kind === "valid" ? await warningsOf(loaded.config, file) : [];
      if (json) console.log(JSON.stringify(toJson(file, loaded, warnings), jsonReplacer, 2));
      else printText(file, loaded, warnings);
      const isGood = loaded.kind === "valid" && !(strict && warnings.length > 0);
      process.exitCode = isGood ? 0 : 1;
    });
}

function toJson(file: string, loaded: LoadedConfig, warnings: readonly Warning[]): object {
  switch (loaded.kind) {
    case "valid":
      return { ok: true, config: file, rules: loaded.config.rules.map(withoutSecrets), warnings };
    case "faulty":
      return { ok: false, config: file, faults: loaded.faults };
    case "unreadable":
      return { ok: false, config: file, error: loaded.error };
    default:
      return loaded satisfies never;
  }
}

/**
 * A replacer for JSON. Without it, a Map would become an empty object, and an address would become
 * an object with its internal fields.
 */
function jsonReplacer(_key: string, value: unknown): unknown {
  if (value instanceof Map) return Object.fromEntries(value);
  if (value instanceof ipaddr.IPv4 || value instanceof ipaddr.IPv6) return value.toString();
  return value;
}

function printText(file: string, loaded: LoadedConfig, warnings: readonly Warning[]): void {
  switch (loaded.kind) {
    case "valid": {
      const { rules } = loaded.config;
      if (rules.length === 0) {
        console.log(`${file} is ok: no rules, so every request passes.`);
        return;
      }
      console.log(`${file} is ok: ${plural(rules.length, "rule")}.\n\n${ruleTable(rules)}`);
      if (warnings.length > 0) console.log(`\n${warningList(warnings)}`);
      return;
    }
    case "faulty": {
      const lines = loaded.faults.map(
        ({ path, message }) => `  ${path || "the configuration"}: ${message}`,
      );
      console.error(`${file} has ${plural(lines.length, "fault")}:\n${lines.join("\n")}`);
      return;
    }
    case "unreadable":
      console.error(`${file} could not be loaded.\n${loaded.error}`);
      return;
    default:
      loaded satisfies never;
  }
}

function warningList(warnings: readonly Warning[]): string {
  const lines = warnings.map(
    ({ code, where, what, advice }) => `  ${code} (${where}): ${what}. ${advice}.`,
  );
  const headline = `${plural(warnings.length, "warning")}, explained in docs/security.md:`;
  return [headline, ...lines].join("\n");
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
