import { Redis, ReplyError } from "ioredis";

/** A command's name and its arguments. */
export type Command = [name: string, ...args: (string | Buffer)[]];

/** What Redis answers: a string as its bytes, so that any value survives. */
export type Reply = Buffer | number | null | Error | Reply[];

/** How one command ended: with a reply, or with Redis's own error message. */
export type Outcome = { reply: Reply } | { error: string };

/** Redis was not there, or went away before it answered. Whether a command ran is unknown. */
export class RedisUnreachable extends Error {
  override name = "RedisUnreachable";
}

/** One connection to Redis. It returns by itself when Redis does. */
export type RedisConnection = {
  /** Runs the commands in order; one that fails does not stop the next. */
  run(commands: readonly Command[]): Promise<Outcome[]>;
  /** Runs the commands as one transaction: all of them with nothing in between, or none. */
  transaction(commands: readonly Command[]): Promise<Outcome[] | { error: string }>;
  close(): void;
};

/**
 * Connects to Redis.
 *
 * @throws {RedisUnreachable} here when nothing answers, and from `run` and `transaction`, at once
 * and without a retry, while Redis is away: a replayed increment would count twice.
 */
export async function connectRedis(address: {
  host: string;
  port: number;
}): Promise<RedisConnection> {
  const client = new Redis({
    ...address,
    lazyConnect: true,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => 50,
  });
  // Each failed command says so itself; without a listener the client would print it once more.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (cause) {
    client.disconnect();
    throw new RedisUnreachable(`No Redis at ${address.host}:${address.port}`, { cause });
  }

  // In capitals because the client reshapes the replies of commands that it knows by their
  // lower-case name (HGETALL into an object), and what is wanted here is what Redis said.
  const send = ([name, ...args]: Command): Promise<Outcome> =>
    settle(client.callBuffer(name.toUpperCase(), ...args));

  return {
    run: (commands) => Promise.all(commands.map(send)),

    async transaction(commands) {
      // Written in one go, so nothing else on this connection can come in between.
      const [, ...results] = await Promise.all([
        send(["MULTI"]),
        ...commands.map(send),
        send(["EXEC"]),
      ]);
      const exec = results.at(-1) as Outcome;
      if ("error" in exec) return exec;
      return (exec.reply as Reply[]).map((reply) =>
        reply instanceof Error ? { error: reply.message } : { reply },
      );
    },

    close: () => client.disconnect(),
  };
}

async function settle(pending: Promise<unknown>): Promise<Outcome> {
  try {
    return { reply: (await pending) as Reply };
  } catch (cause) {
    if (cause instanceof ReplyError) return { error: (cause as Error).message };
    throw new RedisUnreachable("Redis did not answer", { cause });
  }
}
