import { cancel, isCancel, select, text } from "@clack/prompts";
import { Failure } from "./failure.ts";
import { type Field, STORES, type StoreName, type Template, type Texts } from "./fields.ts";

/**
 * The questions of the starter. Each one has an answer: the user's, or the default if the terminal
 * cannot show prompts.
 */
export interface Prompts {
  folder(initial: string, fault: (text: string) => string | undefined): Promise<string>;
  template(initial: Template): Promise<Template>;
  field(field: Field, initial: string, texts: Partial<Texts>): Promise<string>;
  store(): Promise<StoreName>;
}

const TEMPLATE_CHOICES = [
  {
    value: "route",
    label: "In front of a zone's own origin",
    hint: "a route: Weir forwards requests to the zone's server",
  },
  {
    value: "custom-domain",
    label: "On a host name of its own",
    hint: "a custom domain: Weir forwards requests to a URL",
  },
  {
    value: "service",
    label: "In front of another Worker of the account",
    hint: "a service binding",
  },
  {
    value: "hono",
    label: "Inside an existing Hono app on Workers",
    hint: "run this command in the app's folder",
  },
] as const;

const STORE_CHOICES: readonly { value: StoreName; label: string; hint: string }[] = [
  { value: "durable-object", label: "Durable Objects", hint: "no secrets, no other account" },
  { value: "upstash", label: "Upstash Redis", hint: "one database; two secrets" },
];

/** Prompts that a user answers. Each of them throws a {@link Failure} if the user cancels. */
export const terminalPrompts: Prompts = {
  folder: (initial, fault) => ask("In which folder?", initial, fault),
  async template(initial) {
    const message = "Where should Weir run?";
    return answered<Template>(
      await select<Template>({ message, options: [...TEMPLATE_CHOICES], initialValue: initial }),
    );
  },
  field: (field, initial, texts) =>
    ask(field.question, initial, (answer) => field.fault(answer, texts)),
  async store() {
    const message = "Where should Weir count?";
    return answered<StoreName>(
      await select<StoreName>({ message, options: [...STORE_CHOICES], initialValue: STORES[0] }),
    );
  },
};

/** Takes all defaults, without output. */
export const defaultPrompts: Prompts = {
  folder: async (initial) => initial,
  template: async (initial) => initial,
  field: async (_, initial) => initial,
  store: async () => STORES[0],
};

async function ask(
  message: string,
  initial: string,
  fault: (text: string) => string | undefined,
): Promise<string> {
  const validate = (answer: string | undefined) => fault(answer?.trim() || initial);
  const answer = answered(
    await text({ message, placeholder: initial, defaultValue: initial, validate }),
  );
  return answer.trim() || initial;
}

function answered<Value extends string>(answer: Value | symbol): Value {
  if (!isCancel(answer)) return answer as Value;
  cancel("Cancelled.");
  throw new Failure("Nothing was written.");
}
