import type { RestFault } from "../dev/faulty-rest.ts";

/** Faults of the REST server, by name. */
export const REST_FAULTS = {
  "answers 503": { answer: (_, response) => response.writeHead(503).end("<h1>503</h1>") },
  hangs: { answer: () => {} },
  "answers after 100 ms": { answer: (_request, _response, pass) => setTimeout(pass, 100) },
  "answers after 2 s": { answer: (_request, _response, pass) => setTimeout(pass, 2000) },
  "resets connections": { answer: (_, { socket }) => socket?.resetAndDestroy() },
  "refuses connections": { isClosed: true },
  "answers that its quota is used up": {
    answer: (_, response) =>
      response.writeHead(400).end('{"error":"ERR max requests limit exceeded. Limit: 500000"}'),
  },
  "fails every third time": {
    answer: (_, response, pass) => (Math.random() < 1 / 3 ? response.destroy() : pass()),
  },
} satisfies Record<string, RestFault>;

export type RestFaultName = keyof typeof REST_FAULTS;
