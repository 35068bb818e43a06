import { readFileSync } from "node:fs";
import { Command } from "commander";
import { describe, expect, it, test } from "vitest";
import { addAdminCommands } from "../../../cli/admin.ts";
import { addCheckCommand } from "../../../cli/check.ts";
import { CODES as DOCTOR_CODES } from "../../../cli/doctor/findings.ts";
import { addDoctorCommand } from "../../../cli/doctor.ts";
import { addExplainCommand } from "../../../cli/explain.ts";
import { CODES } from "../../../cli/finding.ts";
import { addReplayCommand } from "../../../cli/replay.ts";
import { addSuggestCommand } from "../../../cli/suggest.ts";
import { FAULT_CODES } from "../../../src/config/faults.ts";
import { inlineCodeOf, PAGES, readPage } from "../docs/pages.ts";

const [, ofCheck = "", ofFaults = "", ofDoctor = ""] = readFileSync("docs/codes.md", "utf8").split(
  /^## Codes of /m,
);

/** The codes in bold that a part of the page explains, with their severities; `unmarked` is that of most codes. */
function explainedIn(part: string, unmarked: string): [code: string, severity: string][] {
  const items = part.matchAll(/\*\*`([a-z0-9-]+)`\*\*(?:\s+\((\w+)\))?[,:]\s/g);
  return [...items].map(([, code = "", severity = unmarked]) => [code, severity]);
}

describe("docs/codes.md explains once, with its severity,", () => {
  test("each code of weir check", () => {
    expect(explainedIn(ofCheck, "warning").toSorted()).toEqual(Object.entries(CODES).toSorted());
  });

  test("each code of a fault", () => {
    expect(explainedIn(ofFaults, "fault").map(([code]) => code)).toEqual(FAULT_CODES);
  });

  test("each code of weir doctor that is not ok", () => {
    const codes = Object.entries(DOCTOR_CODES)
      .map(([code, { severity }]) => [code, severity])
      .filter(([, severity]) => severity !== "ok");
    expect(explainedIn(ofDoctor, "fault").toSorted()).toEqual(codes.toSorted());
  });
});

test("every finding of weir doctor that is not ok has cure", () => {
  for (const [code, each] of Object.entries(DOCTOR_CODES)) {
    const cure = "cure" in each ? each.cure : "";
    expect(cure.length > 20, code).toBe(each.severity !== "ok");
    expect(cure, code).not.toMatch(/\.$/);
  }
});

const program = new Command();
const operators = new Command();
for (const add of [addDoctorCommand, addExplainCommand, addReplayCommand, addSuggestCommand]) {
  add(program);
}
addAdminCommands(operators);

test("pages name only options that a command has", () => {
  const all = new Command();
  addCheckCommand(all);
  const commands = [...program.commands, ...operators.commands, ...all.commands];
  const lines = PAGES.map(readPage).flatMap((page) => [
    ...page.blocks.flatMap(({ code }) => code.split("\n")),
    ...inlineCodeOf(page),
  ]);
  const used = lines.flatMap((line) => {
    const [, name, rest = ""] = /\bweir(?: --)? ([a-z]+) ([^|]*)/.exec(line) ?? [];
    const command = commands.find((each) => each.name() === name);
    const known = command?.options.map(({ long }) => long);
    const options = rest.match(/(?<= |^)--[a-z-]+/g) ?? [];
    return known ? options.map((option) => [`${name} ${option}`, known.includes(option)]) : [];
  });
  expect(used.length).toBeGreaterThan(20);
  expect(used.filter(([, isKnown]) => !isKnown)).toEqual([]);
});

describe("docs/cli.md has the exit codes of --help:", () => {
  const rows = readFileSync("docs/cli.md", "utf8")
    .split("\n")
    .flatMap((line) => {
      const [, commands = "", codes = ""] = /^\| ([^|]+) \| (\d[\d, ]*) \|/.exec(line) ?? [];
      return codes.split(", ").map((code) => ({ commands, code }));
    });
  const cases = [
    ...program.commands.map((command) => ({ command, row: `\`${command.name()}\`` })),
    ...operators.commands.map((command) => ({ command, row: "with a Worker" })),
  ];

  it.each(cases.map(({ command, row }) => [command.name(), { command, row }] as const))(
    "%s",
    (_name, { command, row }) => {
      let help = "";
      command.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
      const [, section = ""] = help.split("Exit codes:\n");
      const stated = new Set(
        section
          .split("\n\n")[0]
          ?.match(/(?<=^ {2}|[,;] )\d+(?= )/gm)
          ?.map(String),
      );
      const named = rows.filter(({ commands }) => commands === "all" || commands.includes(row));
      expect([...new Set(named.map(({ code }) => code))].toSorted()).toEqual(
        [...stated].toSorted(),
      );
      expect(stated.size).toBeGreaterThan(2);
    },
  );
});
