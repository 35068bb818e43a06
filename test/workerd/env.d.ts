import type * as worker from "../../src/worker.ts";

declare global {
  namespace Cloudflare {
    interface Env {
      COUNTERS: DurableObjectNamespace<worker.CounterObject>;
    }
    interface GlobalProps {
      mainModule: typeof worker;
    }
  }
}
