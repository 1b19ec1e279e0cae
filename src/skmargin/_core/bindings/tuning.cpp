// The constants of tuning.hpp as Python classes with the same names: made with their defaults, changed field by field.
#include "tuning.hpp"

#include <nanobind/nanobind.h>

namespace nb = nanobind;
using namespace skm;

namespace {

template <class T>
class Fields {
  public:
    Fields(nb::module_& m, const char* name, const char* doc) : class_(m, name, doc) { class_.def(nb::init<>()); }
    template <class Field>
    Fields& field(const char* name, Field T::* member) {
        class_.def_rw(name, member);
        return *this;
    }

  private:
    nb::class_<T> class_;
};

}  // namespace

#define SKMARGIN_FIELD(name) field(#name, &Tuning::name)

// One line a field: long, but a list.
void bind_tuning(nb::module_& m) {
    {
        using Tuning = FaceTuning;
        Fields<Tuning>(m, "FaceTuning", "When steps on the face of the dual are tried, and how far they go.")
            .SKMARGIN_FIELD(first_steps)
            .SKMARGIN_FIELD(more_steps_above)
            .SKMARGIN_FIELD(stop_cg_below)
            .SKMARGIN_FIELD(shorten)
            .SKMARGIN_FIELD(min_gain);
    }
    {
        using Tuning = ProximalTuning;
        Fields<Tuning>(m, "ProximalTuning", "Steps of the multipliers of the intercept.")
            .SKMARGIN_FIELD(stable)
            .SKMARGIN_FIELD(unresponsive);
    }
    {
        using Tuning = CirculationTuning;
        Fields<Tuning>(m, "CirculationTuning", "The dual point that satisfies the constraint of the free intercept.")
            .SKMARGIN_FIELD(one_sided);
    }
    {
        using Tuning = BlockAscentTuning;
        Fields<Tuning>(m, "BlockAscentTuning", "Block ascent on a linear dual.")
            .SKMARGIN_FIELD(work_between_checks)
            .SKMARGIN_FIELD(check_after_fall)
            .SKMARGIN_FIELD(stall_passes)
            .SKMARGIN_FIELD(new_rivals)
            .SKMARGIN_FIELD(longest_skip)
            .SKMARGIN_FIELD(face)
            .SKMARGIN_FIELD(proximal)
            .SKMARGIN_FIELD(circulation);
    }
    {
        using Tuning = ProximalWeightTuning;
        Fields<Tuning>(m, "ProximalWeightTuning", "The proximal weight of an intercept, and the direction of the mean.")
            .SKMARGIN_FIELD(small_share);
    }
    {
        using Tuning = KernelAscentTuning;
        Fields<Tuning>(m, "KernelAscentTuning", "Block ascent on the working set of a kernel machine.")
            .SKMARGIN_FIELD(over_relaxation)
            .SKMARGIN_FIELD(momentum_after)
            .SKMARGIN_FIELD(settle_passes)
            .SKMARGIN_FIELD(skip_below)
            .SKMARGIN_FIELD(skip_below_momentum)
            .SKMARGIN_FIELD(skip_passes)
            .SKMARGIN_FIELD(intercept_news)
            .SKMARGIN_FIELD(mean_window)
            .SKMARGIN_FIELD(mean_max_targets)
            .SKMARGIN_FIELD(check_interval)
            .SKMARGIN_FIELD(stall_passes)
            .SKMARGIN_FIELD(min_theta_share)
            .SKMARGIN_FIELD(min_momentum_passes)
            .SKMARGIN_FIELD(restart_growth);
    }
    {
        using Tuning = NewtonTuning;
        Fields<Tuning>(m, "NewtonTuning", "Semismooth Newton on the proximal dual.")
            .SKMARGIN_FIELD(stage_tol)
            .SKMARGIN_FIELD(start_passes)
            .SKMARGIN_FIELD(squared_sigma)
            .SKMARGIN_FIELD(working_set_width)
            .SKMARGIN_FIELD(widen)
            .SKMARGIN_FIELD(max_inner)
            .SKMARGIN_FIELD(inner_gap)
            .SKMARGIN_FIELD(sharpen_fast)
            .SKMARGIN_FIELD(sharpen)
            .SKMARGIN_FIELD(sharpen_slow)
            .SKMARGIN_FIELD(smoother);
    }
    {
        using Tuning = BoxTuning;
        Fields<Tuning>(m, "BoxTuning", "Dual coordinate ascent for two classes.").SKMARGIN_FIELD(passes_between_checks);
    }
    {
        using Tuning = RidgeTuning;
        Fields<Tuning>(m, "RidgeTuning", "Ridge paths by condensed forms.").SKMARGIN_FIELD(band);
    }
}
