// asv's pages print the beginning of a commit's id; ours have names, such as transformers==4.38.2.
$(function () {  // once asv's own scripts have set up $.asv
    "use strict";
    var names = {"03b76ea318518800bfa1689926b8d9206578e0b6": "keras==3.0.5", "062e16509eb0edaa983e5c1827f799f2aaed6133": "keras==3.5.0", "0b7445c25d97ab88c751e06853a208413319423a": "transformers==4.38.2", "0db9814e03a4e81894682a3c30509347adb47e06": "torch==2.15.0", "15b7346f1bf40e997f9ff6c40b45ee3666ef3f27": "keras==3.12.4", "2228d7a8e36dbd390badb6140234e574b63f0017": "accelerate==0.34.2", "28bed3c522c579c84ab6e3badc49ffb3cfffdd1a": "diffusers==0.33.1", "30fa9f2e7b5be84ab2af02f56bccbdd141f241b7": "peft==0.21.2", "358dc71eff157ba34d8e754649644ae5c4c4895c": "diffusers==0.25.1", "3d830fada97fc185e8a67c6d8e815e486735919f": "transformers==4.44.2", "407daa002608379213fbcd2ed55faa6032fd3638": "transformers==4.39.3", "42357abef96f3741a7249b5ebd9bb4b9bd7f14ce": "diffusers==0.27.2", "46ee84b14acf9c3f9e7262f39979ad732cfc6706": "transformers==4.40.0", "48e7a747964fac88e38e53861b4b4143084d4c7d": "transformers==5.25.0", "4ddccd283313880a61789bbf578d6092e0d50004": "keras-nlp==0.17.0", "4e4c5895c157d3b52db8d067e349180ebab7cf07": "transformers==5.5.4", "4e9e6b95d2a918e273bdd055aa9de3f77d9f110f": "transformers==4.41.2", "5b6ae53f13dd426607e7a64f4b58a621905b60d6": "keras-hub==0.32.0", "5dfe6e6c40eac27bd6474aaa48c99076775bbfdf": "diffusers==0.35.2", "75c17644c683d3b89cbdd46fa250693276b0f2a9": "keras==3.3.3", "7d64dc4e49bc020b7c86a7404acca25e3a11517a": "jax==0.12.0.1", "8059e95504a05c79ff1e2e2c8b02979838a51bee": "transformers==5.6.0", "88e5a22317a9ab82abfe47560c4abff8046eecd5": "transformers==5.24.0", "96de1533f23a21982ee8fe9816240a5783bcdb6e": "diffusers==0.24.0", "a4c972d0258bcffd77f2ac6993b398732fd37060": "transformers==4.48.3", "a978ad8fdd451166e8c51b1c0f60237e89988d14": "transformers==4.37.2", "af6f7c4368105698939aa8b27ba73e6cc919a63f": "diffusers==0.34.0", "b943edd97ee73a19efc1e8fd321f71e64f161f24": "transformers==4.38.1", "bb1a4cf1118ed3d683602902ffcc4f688a71c80c": "reference==2026-12-01", "bbf2fadca3c18ce1a0c7817a3b83685ad17d3caa": "tensorflow==2.21.0", "bd24d34cd185e235a315e2916b1f3e1805ea8824": "transformers==4.57.6", "c248c7d531ea26f878a9f47c8ad149e92350ecfd": "accelerate==1.15.0", "cc50e6c2a86b8a375068c8f3bce670b870867d9a": "keras==3.7.0", "ceb19f2b61e17f2894050adf181307121e79272d": "transformers==5.0.0", "ded4aa3797b956d5b13bfacdced9854c9d152d24": "keras-cv==0.9.0", "e0f16a8e766f5d251d994a29828603b66de670b9": "diffusers==0.42.1", "e250dbc9c481ea8b6f7dd5ffbf3212474c32d7e0": "diffusers==0.26.3", "e4eacb70051d9e8416fa74782ed94c06c2789fae": "diffusers==0.29.2", "f20dc1bdfb776063d425d538a2ae5d6ebc4c7804": "diffusers==0.28.2", "fe589e079c3a558522de20b6d2d3a77d5c8c95c1": "keras==3.15.1", "fff32fc42e3432b304e20e18b7cfe38d09ace112": "transformers==4.42.4"};  // id to name, filled in when the site is published
    var ids = {};
    Object.keys(names).forEach(function (id) { ids[names[id]] = id; });

    $.asv.get_commit_hash = function (revision) {
        var id = $.asv.main_json.revision_to_hash[revision];
        return names[id] || id;
    };

    // In addresses a release is its id, alone or as a pair "a-b": asv reads nothing else there.
    function address(value) {
        if (ids[value]) {
            return ids[value];
        }
        var first = Object.keys(ids).find(function (name) {
            return value.indexOf(name + "-") === 0 && ids[value.slice(name.length + 1)];
        });
        return first ? ids[first] + "-" + ids[value.slice(first.length + 1)] : value;
    }

    var format = $.asv.format_hash_string;
    $.asv.format_hash_string = function (info) {
        if (info.params && info.params.commits) {
            info = $.extend(true, {}, info);
            info.params.commits = info.params.commits.map(address);
        }
        return format(info);
    };
});
