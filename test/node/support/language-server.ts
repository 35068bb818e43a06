import { spawn } from "node:child_process";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

/** A server that returns the texts that an editor shows for a TypeScript file. */
export interface LanguageServer extends AsyncDisposable {
  /** Returns the suggestions for the value after the first `field: "`, in alphabetical order. */
  completions(field: string): Promise<string[]>;
  /**
   * Returns the text that appears if the pointer is on the first `field:`; empty if there is none.
   */
  hover(field: string): Promise<string>;
  /**
   * Returns the text that appears if the pointer is on the last word of `code`, at the first
   * occurrence of `code`; empty if there is none.
   */
  hoverAt(code: string): Promise<string>;
}

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly result?: unknown;
}

interface Position {
  readonly line: number;
  readonly character: number;
}

/**
 * Opens a file in TypeScript's own language server, which speaks the Language Server Protocol.
 *
 * @param path a file of the repository
 * @param text the text that replaces the content of the file
 */
export async function openInEditor(path: string, text: string): Promise<LanguageServer> {
  const server = spawn("node_modules/.bin/tsc", ["--lsp", "--stdio"]);
  const replies = new Map<number, (result: unknown) => void>();
  let sent = 0;

  const write = (message: object) => {
    const body = JSON.stringify({ jsonrpc: "2.0", ...message });
    server.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  };
  const request = (method: string, params?: object) =>
    new Promise<unknown>((reply) => {
      replies.set(++sent, reply);
      write({ id: sent, method, params });
    });

  readMessages(server.stdout, ({ id, method, result }) => {
    if (id === undefined) return;
    // The server also sends requests, such as for settings. These requests need an answer.
    if (method !== undefined) write({ id, result: null });
    else replies.get(id)?.(result);
  });

  const uri = pathToFileURL(resolve(path)).href;
  await request("initialize", {
    processId: process.pid,
    rootUri: pathToFileURL(join(resolve("."), "/")).href,
    capabilities: { textDocument: { hover: { contentFormat: ["markdown"] } } },
  });
  write({ method: "initialized", params: {} });
  const textDocument = { uri, languageId: "typescript", version: 1, text };
  write({ method: "textDocument/didOpen", params: { textDocument } });

  const hover = async (position: Position) => {
    const result = (await request("textDocument/hover", at(position))) as null | {
      readonly contents: { readonly value: string };
    };
    return result?.contents.value ?? "";
  };
  const at = (position: Position) => ({ textDocument: { uri }, position });
  return {
    async completions(field) {
      const position = positionAfter(text, `${field}: "`);
      const list = (await request("textDocument/completion", at(position))) as {
        readonly items: readonly { readonly label: string }[];
      };
      return list.items.map(({ label }) => label).sort();
    },
    hover(field) {
      const { line, character } = positionAfter(text, `${field}:`);
      return hover({ line, character: character - field.length });
    },
    hoverAt(code) {
      const { line, character } = positionAfter(text, code);
      return hover({ line, character: character - 1 });
    },
    async [Symbol.asyncDispose]() {
      const ended = new Promise((done) => server.once("exit", done));
      server.kill();
      await ended;
    },
  };
}

/**
 * Finds the first occurrence of a text at the beginning of a word, and returns the position after
 * the text.
 */
function positionAfter(text: string, searched: string): Position {
  const escaped = searched.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const index = text.search(new RegExp(`(?<!\\w)${escaped}`));
  if (index === -1) throw new Error(`The file does not contain ${searched}`);
  const lines = text.slice(0, index + searched.length).split("\n");
  return { line: lines.length - 1, character: lines.at(-1)?.length ?? 0 };
}

/**
 * Calls a function for each message in a stream. Before each message, the stream has a header with
 * the message's length.
 */
function readMessages(stream: NodeJS.ReadableStream, handle: (message: Message) => void): void {
  let received = Buffer.alloc(0);
  stream.on("data", (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    for (;;) {
      const end = received.indexOf("\r\n\r\n");
      if (end === -1) return;
      const length = Number(
        /Content-Length: (\d+)/i.exec(received.toString("latin1", 0, end))?.[1],
      );
      const body = received.subarray(end + 4, end + 4 + length);
      if (body.length < length) return;
      received = received.subarray(end + 4 + length);
      handle(JSON.parse(body.toString()));
    }
  });
}
