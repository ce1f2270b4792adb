/** What stands in the place of a view that could not be drawn: the rest of the page goes on. */

import { page } from "../app_state.js";
import { html } from "../html.js";
import { Component } from "../vendor/preact.js";
import { forget } from "./load.js";
import { Failure } from "./messages.js";

/** @typedef {{error: unknown, at: unknown}} State  `at` is the state of the URL that could not be drawn */

/** Draws a view again when one goes on from what failed. @extends {Component<{view: () => any}, State>} */
export class Guard extends Component {
  /** @param {{view: () => any}} props */
  constructor(props) {
    super(props);
    this.state = { error: null, at: null };
  }

  /** @param {unknown} error @override */
  componentDidCatch(error) {
    console.error(error);
    this.setState({ error, at: page.value });
  }

  /** @param {{view: () => any}} props @param {State} state @override */
  render({ view: View }, { error, at }) {
    if (at !== page.value) return html`<${View} />`;
    const again = () => {
      forget(); // an answer may be what cannot be drawn
      this.setState({ error: null, at: null });
    };
    return html`<${Failure} error=${error} onRetry=${again} />`;
  }
}
