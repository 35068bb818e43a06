import { isDeepStrictEqual } from "node:util";
import { parse as parseToml } from "smol-toml";
import type { Edit } from "./edit.ts";
import type { ClassNames } from "./edit-entry.ts";
import { type AppFile, parseJson, parseSettings } from "./hono-app.ts";
import { withJsonAdditions, withJsonValue } from "./json-edit.ts";
import { withTomlAddition } from "./toml-edit.ts";
import {
  type Addition,
  buildAdvice,
  exposureAdvice,
  missingSettings,
  withAdditions,
} from "./wrangler-additions.ts";

/**
 * Adds everything that Weir needs to an app's wrangler configuration, and changes nothing else:
 * comments and formatting stay. Each new text is parsed, and is used only if it has exactly the
 * settings of the old text and the additions.
 *
 * @param classes the names under which the app exports Weir's classes
 * @throws {Failure} if the file cannot be read, or if the name of a binding is in use
 */
export function editWrangler(file: AppFile, hasBuild: boolean, classes: ClassNames): Edit {
  const settings = parseSettings(file);
  const isToml = file.path.endsWith(".toml");
  const check = hasBuild ? buildAdvice(settings) : undefined;
  const advice = check ? [`${file.path}: ${check}`] : [];
  const byHand: string[] = [];
  const changes: string[] = [];
  let { text } = file;
  let current = settings;
  for (const addition of missingSettings(settings, hasBuild, classes)) {
    const expected = withAdditions(current, [addition]);
    const candidates = isToml
      ? withTomlAddition(text, addition)
      : [withJsonAdditions(text, addition)];
    const parse = isToml ? parseToml : parseJson;
    const edited = firstWith(candidates, (candidate) =>
      isDeepStrictEqual(plain(parse(candidate)), plain(expected)),
    );
    if (edited === undefined) {
      const steps = addition.isNeeded ? byHand : advice;
      steps.push(`${file.path}: ${addition.change}:\n${linesOf(addition, isToml)}`);
      continue;
    }
    text = edited;
    current = expected;
    changes.push(addition.change);
  }
  const exposure = exposureAdvice(settings);
  // A second run leaves the choice to the user.
  if (exposure && changes.length > 0) advice.push(`${file.path}: ${exposure}`);
  return { text, changes, byHand, advice };
}

/** Returns the first candidate that passes a test. If the test throws an error, the candidate does not pass. */
function firstWith(
  candidates: Iterable<string>,
  test: (candidate: string) => boolean,
): string | undefined {
  for (const candidate of candidates) {
    try {
      if (test(candidate)) return candidate;
    } catch {
      // The candidate cannot be parsed.
    }
  }
  return undefined;
}

/** Makes objects of both parsers comparable: smol-toml's objects have no prototype. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

/** Returns the lines that a user adds by hand. */
function linesOf(addition: Addition, isToml: boolean): string {
  if (!isToml) return withJsonValue(addition);
  const [lines = ""] = withTomlAddition("", addition);
  return lines.trim();
}
