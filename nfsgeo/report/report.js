"use strict";
// Shows the frame that the sliders of a film ask for.
for (const film of document.querySelectorAll(".film")) {
  const images = [...film.querySelectorAll("img")];
  const [which, step] = film.querySelectorAll("input");
  const [name, time] = film.querySelectorAll("output");
  const show = () => {
    for (const image of images) {
      image.hidden = image.dataset.film !== which.value || image.dataset.step !== step.value;
      if (!image.hidden) {
        name.textContent = image.dataset.name;
        time.textContent = image.dataset.time;
      }
    }
  };
  which.addEventListener("input", show);
  step.addEventListener("input", show);
  film.querySelector(".controls").hidden = false;
  show();
}
