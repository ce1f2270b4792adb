/** A button that asks at first and acts then: a double click only asks, and so does Enter that is held down. */

/** The second click of two does nothing. @param {MouseEvent} event */
export function onceOnly(event) {
  if (event.detail > 1) event.preventDefault();
}

/** Of the form of such a button: each repetition of the key would send it again. @param {KeyboardEvent} event */
export function ignoreHeldEnter(event) {
  if (event.key === "Enter" && event.repeat) event.preventDefault();
}
