package exercise

import "slices"

// variants are the variants that the check of each exercise is tested with, by the name of the exercise.
var variants = map[string][]Variant{
	"1": variants1, "2": variants2, "3": variants3, "4": variants4,
	"5": slices.Concat(variants5, holderVariants),
	"6": slices.Concat(variants6, holderVariants),
}
