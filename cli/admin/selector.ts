import { isIP } from "node:net";
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { text } from "node:stream/consumers";
import type { ClientSelector } from "../../src/admin/operations.ts";
import { IDENTITY_FORM, isIdentity } from "../../src/request/identity.ts";
import { wrongOptions } from "./admin-error.ts";

/** The options that name a client. */
export interface SelectorOptions {
  readonly ip?: string;
  readonly known?: readonly string[];
  readonly client?: string;
}

/**
 * Reads which client the options name. Values of clients are sent only in the body of a request, and
 * never printed.
 *
 * @returns undefined if the options name none
 * @throws {AdminError} if the options contradict each other
 */
export async function readSelector(options: SelectorOptions): Promise<ClientSelector | undefined> {
  const { known = [], client } = options;
  const ip = options.ip?.trim();
  if (client !== undefined) {
    if (ip !== undefined || known.length > 0) {
      throw wrongOptions("--client is already complete. Leave out --ip and --known.");
    }
    if (!isIdentity(client)) {
      throw wrongOptions(
        `--client must be ${IDENTITY_FORM}. For an address, use --ip, and for a key --known.`,
      );
    }
    return { client };
  }
  const values: Record<string, string> = ip === undefined ? {} : { ip };
  const hidden: string[] = [];
  for (const each of known) {
    const at = each.indexOf("=");
    const [name, value] = [each.slice(0, at), each.slice(at + 1)];
    if (at < 1 || value === "") {
      throw wrongOptions(
        "--known needs a name and a value, such as header:x-api-key=abc. To read the value from standard input, write header:x-api-key=-",
      );
    }
    if (Object.hasOwn(values, name)) throw wrongOptions(`${name} is given twice.`);
    values[name] = value;
    if (value === "-") hidden.push(name);
  }
  // The value is not printed: a key that was written here by mistake would be in logs.
  if (ip !== undefined && !isIP(ip)) {
    throw wrongOptions(
      "--ip is not an IP address. Allowed: an address without a port and without a prefix length, such as 203.0.113.7 or 2001:db8::7.",
    );
  }
  if (hidden.length > 0) Object.assign(values, await readHidden(hidden));
  return Object.keys(values).length === 0 ? undefined : { known: values };
}

/** @throws {AdminError} if the options name no client */
export async function requireSelector(options: SelectorOptions): Promise<ClientSelector> {
  const selector = await readSelector(options);
  if (selector) return selector;
  throw wrongOptions(
    "Name the client: --ip 203.0.113.7, --known header:x-api-key=- (reads the key from standard input), or --client with an identity from weir top.",
  );
}

/** Reads one line for each name, so that no key lands in the history of the shell. */
async function readHidden(names: readonly string[]): Promise<Record<string, string>> {
  const lines = process.stdin.isTTY
    ? await askHidden(names)
    : (await text(process.stdin)).split(/\r?\n/);
  return Object.fromEntries(
    names.map((name, index) => {
      const value = lines[index]?.trim();
      if (!value) throw wrongOptions(`Standard input has no line with the value of ${name}.`);
      return [name, value];
    }),
  );
}

/** Asks at the terminal. The terminal does not show what the operator types. */
async function askHidden(names: readonly string[]): Promise<string[]> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines: string[] = [];
  for (const name of names) {
    process.stderr.write(`${name} (is not shown): `);
    const prompt = createInterface({ input: process.stdin, output: silent, terminal: true });
    lines.push(await prompt.question(""));
    prompt.close();
    process.stderr.write("\n");
  }
  return lines;
}
