import type * as worker from "../../src/entry/worker.ts";

declare global {
  namespace Cloudflare {
    interface Env {
      COUNTERS: DurableObjectNamespace<worker.CounterObject>;
      WEIR_CONTROL: DurableObjectNamespace<worker.ControlObject>;
    }
    interface GlobalProps {
      mainModule: typeof worker;
    }
  }
}
