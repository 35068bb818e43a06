import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Failure } from "./failure.ts";
import { FIELDS, type Field, type NewTemplate, type Template, type Texts } from "./fields.ts";
import type { Flags } from "./flags.ts";
import { isHonoApp, readHonoApp } from "./hono/hono-app.ts";
import { demandEmpty, namesIn } from "./new-project.ts";
import { defaultPrompts, type Prompts } from "./prompts.ts";

/** The folder for a new project if the current folder is not empty. */
const NEW_FOLDER = "my-weir";

/**
 * Returns the path of the project's folder.
 *
 * @throws {Failure} if nobody can answer prompts, and the current folder has an app that this
 * starter does not know. The user probably does not want a new project inside this app
 */
export async function chooseFolder(flags: Flags, prompts: Prompts): Promise<string> {
  if (flags.dir !== undefined) return resolve(flags.dir);
  if (flags.template === "hono" || (flags.template === undefined && (await isHonoApp(".")))) {
    return resolve(".");
  }
  if (prompts === defaultPrompts && flags.template === undefined && existsSync("package.json")) {
    await refuseApp();
  }
  const initial = (await namesIn(".")).length === 0 ? "." : NEW_FOLDER;
  return resolve(await prompts.folder(initial, () => undefined));
}

async function refuseApp(): Promise<never> {
  const reason = await readHonoApp(".").then(
    () => "It is a project with Weir.",
    (error: Error) => error.message,
  );
  throw new Failure(
    `The current folder has a package.json, but it is not a Hono app to which the starter can add Weir. ${reason}
To create a new project, name its folder: npm create edge-weir@latest ${NEW_FOLDER}`,
  );
}

/** @throws {Failure} if the folder cannot take a project of this template */
export async function chooseTemplate(
  flags: Flags,
  folder: string,
  prompts: Prompts,
): Promise<Template> {
  const isApp = await isHonoApp(folder);
  const template = flags.template ?? (await prompts.template(isApp ? "hono" : "route"));
  if (template !== "hono") await demandEmpty(folder);
  return template;
}

/**
 * Fails if a flag has no effect with a template.
 *
 * @throws {Failure} with the flag and the templates that use it
 */
export function demandUsedFlags(template: Template, flags: Flags): void {
  const unused = FIELDS.filter(
    ({ key, templates }) =>
      flags[key] !== undefined && !(templates as readonly Template[]).includes(template),
  );
  const faults = unused.map(
    ({ key, templates }) =>
      `--${key} has no effect with --template ${template}. It belongs to ${templates.join(", ")}.`,
  );
  if (template === "hono" && flags.store !== undefined) {
    faults.push(
      "--store has no effect with --template hono: the app counts in Upstash as soon as the secret UPSTASH_REDIS_REST_URL is set.",
    );
  }
  if (faults.length > 0) throw new Failure(faults.join("\n"));
}

/**
 * Returns the texts of a template: those of the flags, and the answers to the prompts. The texts
 * that the template does not use have their defaults.
 *
 * @throws {Failure} with all faults of the flags
 */
export async function chooseTexts(
  template: NewTemplate,
  flags: Flags,
  folder: string,
  prompts: Prompts,
): Promise<Texts> {
  demandValid(FIELDS, flags);
  const texts: { -readonly [Key in keyof Texts]?: string } = {};
  for (const field of FIELDS) {
    const initial = field.initial(texts, folder);
    const isAsked = flags[field.key] === undefined && field.templates.includes(template);
    texts[field.key] = isAsked
      ? await prompts.field(field, initial, texts)
      : (flags[field.key] ?? initial);
  }
  // A flag may contradict a default, or an answer.
  const used = FIELDS.filter(({ templates }) => templates.includes(template));
  demandValid(used, texts);
  return texts as Texts;
}

/** @throws {Failure} with all faults */
function demandValid(fields: readonly Field[], texts: Partial<Texts>): void {
  const faults = fields.flatMap(({ key, fault }) => {
    const text = texts[key];
    const found = text === undefined ? undefined : fault(text, texts);
    return found === undefined ? [] : [`--${key} ${JSON.stringify(text)}: ${found}`];
  });
  if (faults.length > 0) throw new Failure(`${faults.join("\n")}\nNothing was written.`);
}
