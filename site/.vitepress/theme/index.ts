import type { Theme } from "vitepress";
// This theme has the system's fonts, so that a page loads no fonts.
import DefaultTheme from "vitepress/theme-without-fonts";
import { defineComponent, h } from "vue";
import { searchOptions } from "./search.ts";
import "./style.css";

/** The playground, in place of the code that it contains. Only the first page loads the playground. */
const Playground = defineComponent({
  async mounted() {
    const { mountPlayground } = await import("../../playground/playground.ts");
    mountPlayground(this.$el);
  },
  render() {
    return h("div", { class: "playground" }, this.$slots.default?.());
  },
});

export default {
  extends: DefaultTheme,
  enhanceApp: ({ app, siteData }) => {
    app.component("Playground", Playground);
    const { themeConfig } = siteData.value;
    const search = { provider: "local", options: { miniSearch: { searchOptions } } };
    siteData.value = { ...siteData.value, themeConfig: { ...themeConfig, search } };
  },
} satisfies Theme;
