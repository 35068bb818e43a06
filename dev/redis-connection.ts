import { Redis, ReplyError } from "ioredis";

/** A command's name and its arguments. */
export type Command = [name: string, ...args: (string | Buffer)[]];

/** A reply of Redis. Strings are bytes, because decoding them could change a value. */
export type Reply = Buffer | number | null | Error | Reply[];

/** The result of a command: a reply, or Redis's error message. */
export type Outcome = { reply: Reply } | { error: string };

/** Redis could not be reached, or did not answer. It is unknown whether Redis ran the command. */
export class RedisUnreachable extends Error {
  override name = "RedisUnreachable";
}

/** A connection to Redis. It reconnects automatically. */
export interface RedisConnection {
  /** Runs commands in order. If a command fails, the next commands still run. */
  run(commands: readonly Command[]): Promise<Outcome[]>;
  /**
   * Runs commands as a transaction. Redis runs either all of them, without other commands between
   * them, or none.
   */
  transaction(commands: readonly Command[]): Promise<Outcome[] | { error: string }>;
  close(): void;
}

/**
 * Connects to Redis.
 *
 * @throws {RedisUnreachable} if Redis does not answer. `run` and `transaction` throw this error too, at once and
 *   without a retry, because a repeated increment would count twice
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
  // Each failed command rejects already. Without a listener the client would also print the error.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (cause) {
    client.disconnect();
    throw new RedisUnreachable(`No Redis at ${address.host}:${address.port}`, { cause });
  }

  // The client changes replies of commands whose lower-case names it knows: it turns the reply of HGETALL into an
  // object. With a name in capitals, it returns the reply unchanged.
  const send = ([name, ...args]: Command): Promise<Outcome> =>
    outcomeOf(client.callBuffer(name.toUpperCase(), ...args));

  return {
    run: (commands) => Promise.all(commands.map(send)),

    async transaction(commands) {
      // The client writes all commands at once, so this connection runs no other command between
      // them.
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

async function outcomeOf(pending: Promise<unknown>): Promise<Outcome> {
  try {
    return { reply: (await pending) as Reply };
  } catch (cause) {
    if (cause instanceof ReplyError) return { error: (cause as Error).message };
    throw new RedisUnreachable("Redis did not answer", { cause });
  }
}
