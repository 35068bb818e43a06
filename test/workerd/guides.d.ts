/** The configuration of a page or of one of its sections. See dev/vitest-guides.ts. */
declare module "guide:*" {
  const config: import("../../src/config/index.ts").Config;
  export default config;
}

/** The Worker on a page. */
declare module "*.md/worker.ts" {
  type Event = import("../../src/config/index.ts").QuotaEvent;
  interface Message {
    readonly body: Event;
    readonly attempts: number;
    ack(): void;
    retry(options: { readonly delaySeconds: number }): void;
  }
  const worker: {
    queue(batch: { readonly messages: readonly Message[] }, env: object): Promise<void>;
  };
  export default worker;
}
