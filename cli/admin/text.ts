import { styleText } from "node:util";
import type { ClientEffect, RuleEffect } from "../../src/overrides/override.ts";
import { printable } from "../doctor/findings.ts";
import { padded, widthOf } from "../print/text.ts";

type Style = Parameters<typeof styleText>[0];

/**
 * Colours a text, but only on a terminal and without the environment variable NO_COLOR
 * (https://no-color.org).
 */
export function styled(style: Style, text: string): string {
  const isColoured = process.stdout.isTTY && !process.env.NO_COLOR && process.env.TERM !== "dumb";
  return isColoured ? styleText(style, text, { validateStream: false }) : text;
}

/** A cell of a table: a text, and its style on a terminal. Numbers are aligned to the right. */
export type Cell = string | number | { readonly text: string | number; readonly style: Style };

/**
 * Returns an aligned table. Columns that are empty in all rows are left out. Texts of clients and
 * operators cannot move the cursor or change colours.
 */
export function table(headings: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => row.map(textOf));
  const columns = headings.flatMap((heading, column) => {
    const cells = texts.map((row) => row[column] ?? "");
    if (cells.every((cell) => cell === "")) return [];
    const isNumber = rows.every((row) => isNumeric(row[column]));
    const width = Math.max(heading.length, ...cells.map(widthOf));
    return [{ column, isNumber, width, heading }];
  });
  const align = (text: string, { isNumber, width }: { isNumber: boolean; width: number }) =>
    padded(text, width, isNumber ? "left" : "right");
  const heading = columns.map((each) => align(each.heading, each)).join("  ");
  const lines = rows.map((row, index) =>
    columns
      .map((each) => {
        const cell = row[each.column];
        const text = align(texts[index]?.[each.column] ?? "", each);
        return typeof cell === "object" ? styled(cell.style, text) : text;
      })
      .join("  ")
      .trimEnd(),
  );
  return [styled("dim", heading.trimEnd()), ...lines].join("\n");
}

function textOf(cell: Cell): string {
  const text = typeof cell === "object" ? cell.text : cell;
  return typeof text === "number" ? count(text) : printable(text);
}

function isNumeric(cell: Cell | undefined): boolean {
  const text = typeof cell === "object" ? cell.text : cell;
  return typeof text === "number" || text === undefined || text === "";
}

/** Formats a number with spaces between thousands: 1234567 → `1 234 567`. */
export function count(value: number): string {
  return String(value).replace(/(?<=^\d+)(?=(?:\d{3})+$)/g, " ");
}

/** Formats a length of time with at most two units: 3723000 → `1h 2m`. */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.ceil(ms / 1000));
  const parts: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ];
  const first = parts.findIndex(([value]) => value > 0);
  if (first === -1) return "0s";
  const shown = parts.slice(first, first + 2).filter(([value]) => value > 0);
  return shown.map(([value, unit]) => `${value}${unit}`).join(" ");
}

/** Formats a time in UTC: `2026-11-22 17:04Z`. */
export function time(at: number): string {
  return `${new Date(at).toISOString().slice(0, 16).replace("T", " ")}Z`;
}

/** Describes the effect of an override in a few words. */
export function effectText(effect: ClientEffect | RuleEffect): string {
  if (!("kind" in effect)) {
    const { mode, factor } = effect;
    return [mode && `mode ${mode}`, factor !== undefined && `limits × ${factor}`]
      .filter(Boolean)
      .join(", ");
  }
  switch (effect.kind) {
    case "limits":
      return Object.entries(effect.limits)
        .map(([policy, limit]) => `${policy} = ${count(limit)}`)
        .join(", ");
    case "factor":
      return `limits × ${effect.factor}`;
    default:
      return effect.kind;
  }
}
