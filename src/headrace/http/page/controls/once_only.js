/** A button that asks at first and acts then: a double click only asks. */

/** The second click of two does nothing. @param {MouseEvent} event */
export function onceOnly(event) {
  if (event.detail > 1) event.preventDefault();
}
